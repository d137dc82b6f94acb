"""What a command that parses has to do: its models, outputs, the inputs of each, its shard of them; what is done."""

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from treeparse.cli.common import counted
from treeparse.cli.models import check_models, leading_models
from treeparse.cli.outputs import check_outputs
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

if TYPE_CHECKING:
    from treeparse.data.shards import Shard

_SHARD = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,8})")
_KNOWN_SUFFIXES = (".conllu", ".txt", ".tok")  # of inputs; they give way to that of another format


@dataclass(frozen=True, slots=True)
class Source:
    """An input file, or this shard's run of its sentences."""

    path: Path
    number: int  # among all inputs, from 0
    span: range | None = None  # the bytes in which the sentences start; None: all

    @property
    def size(self) -> int | None:
        """Bytes to read, where they can be known without reading."""
        if self.span is not None:
            return len(self.span)
        from treeparse.data.compression import compression_of_name

        known = self.path.is_file() and compression_of_name(self.path) is None
        return self.path.stat().st_size if known else None


@dataclass(frozen=True, slots=True)
class Part:
    """An output and what it is made from."""

    target: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Folders of models, all inputs, and what this process makes of them."""

    models: list[str]
    paths: list[Path]
    parts: list[Part]


@dataclass(slots=True)
class Tally:
    """What was done of the parts, and what was left out."""

    max_words: int | None
    there: int = 0  # outputs of earlier commands
    files: int = 0  # written to a folder
    sentences: int = 0  # parsed
    words: int = 0
    left_out: int = 0  # faulty sentences
    long: int = 0  # left out, too
    empty: int = 0  # files

    def add(self, sentences: Sequence[Sentence]) -> None:
        self.sentences += len(sentences)
        self.words += sum(map(len, sentences))

    def summary(self, seconds: float, remark: str) -> str:
        sums = [
            *([counted(self.files, "file")] if self.files else []),
            counted(self.sentences, "sentence"),
            counted(self.words, "word"),
            f"{self.words / seconds:,.0f} words/s",
        ]
        notes = [
            remark,
            f"{counted(self.left_out, 'sentence')} left out" if self.left_out else "",
            f"{counted(self.long, 'sentence')} of more than {self.max_words:,} words left out" if self.long else "",
            f"{counted(self.empty, 'file')} without a sentence" if self.empty else "",
            f"{counted(self.there, 'output')} there already" if self.there else "",
        ]
        return f"treeparse: {'; '.join(filter(None, (', '.join(sums), *notes)))}"


def shard_argument(text: str) -> "tuple[int, int]":
    """The type of ``--shard``: a number and a count."""
    match = _SHARD.fullmatch(text)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a shard i/n, such as 2/4: the second of four")
    return int(match[1]), int(match[2])


def make_plan(args: argparse.Namespace, suffix: str | None) -> Plan:
    """Find the inputs and outputs of the arguments of `treeparse.cli.reading`; ``suffix`` is as in `plan_parts`.

    Raises:
        TreeparseError: as in `plan_parts`; there is no input; an output cannot be written, or is an input.
        OSError: a folder of outputs cannot be made or written to.
    """
    from treeparse.data.files import expand_paths
    from treeparse.data.shards import Shard

    models, inputs = leading_models([*args.models, *args.inputs])  # which argparse cannot tell apart
    if not inputs:
        raise TreeparseError(
            f"There is no input behind the folders {', '.join(models)}, which are taken for models: name files of "
            "sentences, or - for standard input."
        )
    paths = expand_paths(inputs)
    parts = plan_parts(paths, args.output, args.shard and Shard(*args.shard), suffix)
    read = [*inputs, *getattr(args, "held_out", ())]
    targets, makes_folders = [part.target for part in parts], is_folder(args.output)
    check_outputs(args, targets, inputs=read, others=[*models, args.rules], makes_folders=makes_folders)
    check_models(models, args)
    return Plan(models, paths, parts)


def plan_parts(paths: Sequence[Path], output: str, shard: "Shard | None", suffix: str | None) -> list[Part]:
    """The outputs of this process: one of all inputs or, in a folder, one of each.

    Args:
        paths: all inputs.
        output: a file, ``-``, or a folder: one that exists, or a name that ends in a slash.
        shard: this process's share of the files for a folder, of the sentences otherwise; None: all.
        suffix: of the outputs in a folder, in the place of the inputs'; None keeps it.

    Raises:
        TreeparseError: two inputs would have one output, standard input goes to a folder, or an input that is no file
            has shards.
    """
    from treeparse.data.shards import file_size

    sources = [Source(path, number) for number, path in enumerate(paths)]
    if is_folder(output):
        parts = list(map(Part, _targets(paths, output, suffix), ((source,) for source in sources)))
        return parts if shard is None else [parts[place] for place in shard.files(list(map(_stored_size, paths)))]
    if shard is not None:
        spans = shard.spans(list(map(file_size, paths)))
        sources = [replace(source, span=span) for source, span in zip(sources, spans, strict=True)]
    return [Part(output, tuple(sources))]


def is_folder(output: str) -> bool:
    """Whether an output is a folder for files: one that exists, or a name that ends in a slash."""
    return os.path.isdir(output) or output.endswith(("/", os.sep))


def total_size(parts: Sequence[Part]) -> int | None:
    """The size of the parts' inputs in bytes, where it can be known."""
    sizes = [source.size for part in parts for source in part.sources]
    return None if None in sizes else sum(filter(None, sizes))


def _stored_size(path: Path) -> int:
    return path.stat().st_size


def _targets(paths: Sequence[Path], folder: str, suffix: str | None) -> list[str]:
    """The output of each input: its name in the folder, below the folders that are not common to all inputs."""
    if Path("-") in paths:
        raise TreeparseError(f"Standard input has no name for a file in the folder {folder}: name a file by -o.")
    files = [os.path.abspath(path) for path in paths]
    try:
        common = os.path.commonpath(list(map(os.path.dirname, files)))
    except ValueError as error:  # several drives
        raise TreeparseError(f"The inputs share no folder ({error}): parse each drive's by a command.") from error
    targets = [os.path.join(folder, _renamed(os.path.relpath(file, common), suffix)) for file in files]
    seen: dict[str, Path] = {}
    for path, target in zip(paths, targets, strict=True):
        if (first := seen.setdefault(target, path)) is not path:
            raise TreeparseError(
                f"The outputs of {first} and {path} would both be {target}: parse them by two commands."
            )
    return targets


def _renamed(name: str, suffix: str | None) -> str:
    if suffix is None:
        return name
    from treeparse.data.compression import plain_name

    stem = plain_name(name)
    known = next((end for end in _KNOWN_SUFFIXES if stem.endswith(end)), "")
    return stem.removesuffix(known) + suffix + name.removeprefix(stem)
