"""Requests to parse a corpus, and their parts: each output with its inputs."""

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heapreplace
from itertools import pairwise, product
from pathlib import Path

from treeparse.corpus.readers import READERS, Reader, ReaderOptions
from treeparse.corpus.writers import FileWriter, WriterOptions, make_writer
from treeparse.data.files import STANDARD_STREAM, display_name, expand_paths, has_name, plain_name
from treeparse.data.nbest import format_of
from treeparse.data.outputs import check_output
from treeparse.data.raw_text import Tokenizer, tokenizer_named
from treeparse.errors import DataError, TreeparseError
from treeparse.model import TreeRequest
from treeparse.model.folder import FILES, RUN_MODEL
from treeparse.user_code import class_named

INPUT_SUFFIXES = (".conllu", ".txt", ".tok", ".jsonl", ".parquet")  # the suffix of the output replaces these
FAULTS_SUFFIX = ".faults.jsonl"


def check_outputs(
    outputs: Iterable[str | None],
    *,
    inputs: Iterable[str | None] = (),
    others: Iterable[str | None] = (),
    makes_folders: bool = False,
    overwrite_input: bool = False,
) -> None:
    """Raise for outputs that cannot be written or are inputs.

    Args:
        outputs: files; None and ``-`` are skipped.
        inputs: files, globs and ``-``; None is skipped.
        others: further files, and folders of models or runs, which need not exist; None is skipped.
        makes_folders: whether missing folders of outputs will be made.
        overwrite_input: whether an output may replace an input.

    Raises:
        TreeparseError: an input is missing; no file can be written there; an output is an input or another output.
        OSError: the folder of an output may not be written to.
    """
    names = [(), *product(FILES), *product([RUN_MODEL], FILES)]  # of a file, and of the files in a model or a run
    sources = expand_paths([path for path in inputs if path is not None])
    sources += [Path(path, *name) for path in others if path is not None for name in names]
    files = [path for path in outputs if path is not None and path != STANDARD_STREAM]
    for path in files:
        if makes_folders and not os.path.isdir(folder := os.path.dirname(path)):
            check_new_folder(folder)
        else:
            check_output(path)
    known = {} if overwrite_input else {_identity(path): path for path in sources}
    for path in files:
        if (identity := _identity(path)) is not None and identity in known:
            raise TreeparseError(
                f"The output {path} would replace the input {known[identity]}: name another file, or allow "
                "it with --overwrite-input."
            )
    files = [path for path in files if os.path.isfile(path) or not os.path.exists(path)]  # not pipes and devices
    for first, second in pairwise(sorted(files, key=os.path.realpath)):
        if os.path.realpath(first) == os.path.realpath(second):
            raise TreeparseError(f"The outputs {first} and {second} are one file: name two.")


def check_new_folder(path: str | Path) -> None:
    """Raise if a folder does not exist and cannot be made with its parents."""
    above = next(folder for folder in (Path(path).absolute(), *Path(path).absolute().parents) if folder.exists())
    if not above.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(above))
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(above))


def _identity(path: str | Path) -> tuple[int, int] | None:
    """Return the device and inode of a regular file, the same under all its names; None for anything else."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``number``, from 1, of ``count`` disjoint parts that together are the whole input."""

    number: int
    count: int

    def files(self, sizes: Sequence[int]) -> list[int]:
        """Return the indices of this shard's files, in order, from the sizes of all files in bytes.

        Files are assigned by falling size, each to the shard with the fewest bytes, so that shards are about equal.
        """
        loads = [(0, number) for number in range(1, self.count + 1)]
        heapify(loads)
        indices = []
        for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
            load, number = loads[0]
            heapreplace(loads, (load + sizes[index] + 1, number))
            if number == self.number:
                indices.append(index)
        return sorted(indices)

    def spans(self, sizes: Sequence[int]) -> list[range]:
        """Return the bytes of each file in which this shard's sentences start, from the sizes of all files in bytes.

        Each shard is one run of bytes through the files, and all runs have the same length.
        """
        total, before, spans = sum(sizes), 0, []
        first, end = (total * number // self.count for number in (self.number - 1, self.number))
        for size in sizes:
            spans.append(range(*(min(max(edge - before, 0), size) for edge in (first, end))))
            before += size
        return spans


@dataclass(frozen=True, slots=True)
class CorpusRequest:
    """Files to read, trees to find, and where and how to write them.

    Attributes:
        inputs: files, plain or compressed, globs, and ``-`` for standard input.
        output: a file, ``-`` for standard output, or a folder (one that exists, or a name that ends in a slash), which
            gets a file an input.
        trees: the trees of every sentence.
        format: of the inputs: ``text`` has a tokenised sentence a line, or with a tokenizer a paragraph; ``jsonl`` and
            ``parquet`` have documents of such lines; or the class path of a reader. None chooses by the name of the
            first input.
        text_column: the key or column of documents that holds their text.
        id_column: the one that holds their ids; None numbers them.
        tokenizer: splits raw text; a name as ``spacy:en``, or a function.
        output_format: the name of a writer, its class path, or a writer; None chooses by the name of the output.
        tags: whether the tags that the model predicts are written.
        drop_empty: whether empty nodes (8.1) are left out.
        skip_invalid: whether faulty sentences are left out, otherwise they are errors.
        faults: where the sentences that are left out are listed, see `treeparse.corpus.corpus_parsing`: a file, or a
            folder if the output is a folder; None for no list.
        max_words: longer sentences are left out.
        shard: the share of this process; None is everything.
        skip_existing: whether outputs that exist stay as they are.
        overwrite_input: whether an output may replace an input.
        chunk: sentences that are read ahead; None chooses a number.
    """

    inputs: Sequence[str | Path]
    output: str | Path = "-"
    trees: TreeRequest = field(default_factory=TreeRequest)
    format: str | None = None
    text_column: str = "text"
    id_column: str | None = None
    tokenizer: str | Tokenizer | None = None
    output_format: str | FileWriter | None = None
    tags: bool = False
    drop_empty: bool = False
    skip_invalid: bool = False
    faults: str | Path | None = None
    max_words: int | None = None
    shard: Shard | None = None
    skip_existing: bool = False
    overwrite_input: bool = False
    chunk: int | None = None

    def __post_init__(self) -> None:
        is_text = self.reader().is_text
        if self.tokenizer is not None and not is_text:
            raise TreeparseError(
                f"A tokenizer splits raw text, but the format is {self.input_format}: give the format text."
            )
        if is_text and (self.trees.keep_heads or self.trees.within):
            raise TreeparseError(
                f"--keep-heads and --within read heads of CoNLL-U, but --format is {self.input_format}: leave them out."
            )
        if self.faults is not None and self.has_folder != is_folder(str(self.faults)):
            kinds = ("a folder", "a file") if self.has_folder else ("a file", "a folder")
            raise TreeparseError(
                f"The output {self.output} is {kinds[0]}, but the list of faults {self.faults} is {kinds[1]}: name "
                "two files, or two folders, whose names end in /."
            )

    @property
    def input_format(self) -> str:
        """The format of the inputs."""
        return self.format or format_named(next(iter(self.inputs), ""))

    def reader(self) -> Reader:
        """Return the reader of the input format."""
        options = ReaderOptions(self.chunk == 1, self.text_column, self.id_column)
        return class_named(self.input_format, READERS, Reader, "input format")(options)

    @property
    def has_folder(self) -> bool:
        """Whether the output is a folder."""
        return is_folder(str(self.output))

    def load_tokenizer(self) -> Tokenizer | None:
        """Return the tokenizer, which a name may have to load."""
        return tokenizer_named(self.tokenizer) if isinstance(self.tokenizer, str) else self.tokenizer

    def writer(self) -> FileWriter:
        """Return the writer of the output format.

        Raises:
            TreeparseError: there is no such format, or it cannot hold what is to be written.
        """
        if isinstance(self.output_format, FileWriter):
            return self.output_format
        name = self.output_format or ("conllu" if self.has_folder else format_named(self.output))
        return make_writer(name, WriterOptions.of(self.trees, tags=self.tags, drop_empty=self.drop_empty))


@dataclass(frozen=True, slots=True)
class CorpusInput:
    """An input file, or the sentences of the file that belong to a shard.

    Attributes:
        path: the file.
        number: among all inputs, from 0.
        span: the bytes or rows at which the sentences start; None for all.
        name: of the file in messages and lists of faults, where it is the copy of another one.
    """

    path: Path
    number: int
    span: range | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class CorpusPart:
    """An output, its inputs, and the list of the sentences that are left out, if it is asked for."""

    target: str
    faults: str | None
    inputs: tuple[CorpusInput, ...]


def list_parts(
    request: CorpusRequest, *, also_read: Iterable[str] = (), others: Iterable[str | None] = ()
) -> list[CorpusPart]:
    """Return the parts of a request: one for all inputs or, where the output is a folder, one for each input.

    Args:
        request: the request; its shard has some of the inputs of a folder, or a run of the sentences of a file.
        also_read: further files and globs that are read; no output may replace them.
        others: further files, and folders of models or runs, that are read; they need not exist.

    Raises:
        TreeparseError: two inputs have one output, a pipe goes to a folder, an input that is no file has
            shards, an output cannot be written or is an input, or a file does not exist.
        OSError: the folder of an output cannot be made or written to.
    """
    paths = expand_paths(request.inputs)
    inputs, shard = [CorpusInput(path, number) for number, path in enumerate(paths)], request.shard
    if request.has_folder:
        targets = targets_of(paths, request)
        parts = [CorpusPart(*target, (source,)) for target, source in zip(targets, inputs, strict=True)]
        if shard is not None:
            parts = [parts[index] for index in shard.files([path.stat().st_size for path in paths])]
    else:
        if shard is not None:
            spans = shard.spans([*map(request.reader().length, paths)])
            inputs = [replace(source, span=span) for source, span in zip(inputs, spans, strict=True)]
        faults = None if request.faults is None else str(request.faults)
        parts = [CorpusPart(str(request.output), faults, tuple(inputs))]
    check_outputs(
        [output for part in parts for output in (part.target, part.faults)],
        inputs=[*map(str, request.inputs), *also_read],
        others=others,
        makes_folders=request.has_folder,
        overwrite_input=request.overwrite_input,
    )
    return parts


def total_length(parts: Sequence[CorpusPart], reader: Reader) -> int | None:
    """Return the length of all inputs in the unit of their format; None if only reading them can tell."""
    lengths = [
        reader.known_length(source.path) if source.span is None else len(source.span)
        for part in parts
        for source in part.inputs
    ]
    return None if None in lengths else sum(filter(None, lengths))


def format_named(path: str | Path) -> str:
    """Return the format that the name of a file says: jsonl, parquet or else conllu."""
    return "parquet" if plain_name(path).endswith(".parquet") else format_of(path)


def is_folder(output: str) -> bool:
    """Return whether an output is a folder for files: one that exists, or a name that ends in a slash."""
    return os.path.isdir(output) or output.endswith(("/", os.sep))


def targets_of(paths: Sequence[str | Path], request: CorpusRequest) -> list[tuple[str, str | None]]:
    """Return the output of each input and, if they are asked for, its list of faults; paths may be URLs.

    Raises:
        TreeparseError: two inputs have one output, or a pipe goes to a folder.
    """
    writer = request.writer()
    if (suffix := getattr(writer, "suffix", None)) is None:
        raise TreeparseError(
            f"The writer {type(writer).__name__} has no suffix, in which the names of files in the folder "
            f"{request.output} end: give its class one, suffix = '.name', or name an output file."
        )
    keeps_names = suffix == ".conllu" and request.input_format == "conllu"  # because the format stays the same
    targets = _targets(paths, str(request.output), None if keeps_names else suffix)
    if request.faults is None:
        return [(target, None) for target in targets]
    return list(zip(targets, _targets(paths, str(request.faults), FAULTS_SUFFIX), strict=True))


def _targets(paths: Sequence[str | Path], folder: str, suffix: str | None) -> list[str]:
    """Return the output of each input: its name in the folder, below those folders that the inputs do not share.

    ``suffix`` replaces the suffix of the name; None keeps it.
    """
    for path in paths:
        if not has_name(path):
            problem = f"a pipe has no name for a file in the folder {folder}: name an output file"
            raise DataError(problem, source=display_name(path))
    files = [os.path.abspath(path) for path in paths]
    try:
        common = os.path.commonpath([*map(os.path.dirname, files)])
    except ValueError as error:  # several drives
        raise TreeparseError(f"The inputs share no folder ({error}): parse each drive's by a command.") from error
    first_paths: dict[str, str | Path] = {}
    for path, file in zip(paths, files, strict=True):
        target = os.path.join(folder, os.path.relpath(file, common))
        if suffix is not None:
            stem = plain_name(target)
            known = next((end for end in INPUT_SUFFIXES if stem.endswith(end)), "")
            target = stem.removesuffix(known) + suffix + target.removeprefix(stem)
        if (first := first_paths.setdefault(target, path)) is not path:
            raise TreeparseError(
                f"The outputs of {first} and {path} would both be {target}: parse them by two commands."
            )
    return list(first_paths)
