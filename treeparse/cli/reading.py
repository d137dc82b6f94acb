"""What the commands that parse share: arguments, sentences read by chunks, the progress bar and the closing line."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from treeparse.cli.common import positive

if TYPE_CHECKING:
    from treeparse.core import DataError, Sentence
    from treeparse.data.conllu import ConlluSentence
    from treeparse.model import Parser

CHUNK = 1000
CHUNK_WORDS = 100_000  # bounds the memory where sentences are long

CHUNKS = """\
Sentences are read and parsed --chunk at a time. From a terminal, or with --chunk 1, each one is parsed as soon as it
is complete: by its line end in text, by the blank line behind it in CoNLL-U. A program that waits for each parse
before it sends the next sentence needs --chunk 1."""

T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser, *, output: str) -> None:
    """Declare the arguments; ``output`` is the help of ``-o``."""
    parser.add_argument("model", metavar="MODEL", help="the folder of a model, or of its run")
    parser.add_argument("inputs", nargs="+", metavar="IN", help="files, plain or .gz; globs; - for standard input")
    parser.add_argument("-o", "--output", default="-", metavar="OUT", help=output)
    parser.add_argument(
        "--format",
        choices=("conllu", "text"),
        default="conllu",
        help="of the input; text has a tokenised sentence a line",
    )
    parser.add_argument(
        "--drop-empty", action="store_true", help="leave out empty nodes (8.1): without DEPS they are not valid UD"
    )
    parser.add_argument(
        "--skip-invalid", action="store_true", help="leave out CoNLL-U sentences that are faulty, with a count"
    )
    parser.add_argument(
        "--batch-words", type=positive, default=5000, metavar="N", help="words parsed at once (default: 5000)"
    )
    parser.add_argument("--chunk", type=positive, metavar="N", help=f"sentences read ahead (default: {CHUNK})")


def parse_files(
    args: argparse.Namespace,
    parse: "Callable[[Parser, Sequence[Sentence]], Sequence[T]]",
    write: "Callable[[Iterator[tuple[ConlluSentence, T]]], object]",
    *,
    chunk_words: int | None = None,
    remark: Callable[[], str] = str,
) -> int:
    """Parse the sentences of all files by chunks and write them; show progress, and the sums at the end.

    Args:
        args: the command's arguments, :func:`add_arguments`'s among them.
        parse: the results for a list of sentences, which come without the trees of the file.
        write: takes the sentences with their results, in order.
        chunk_words: a chunk with so many words has enough sentences.
        remark: what the closing line says besides, if anything.
    """
    from tqdm import tqdm

    from treeparse.core import TreeparseError, pick_device
    from treeparse.data.files import expand_paths
    from treeparse.model import Parser

    paths = expand_paths(args.inputs)
    parser = Parser.from_pretrained(args.model).to(pick_device(args.device))
    tally, started = _Tally(), time.perf_counter()
    size = args.chunk or (1 if Path("-") in paths and sys.stdin.isatty() else CHUNK)
    chunks = _chunks(_checked(_read(paths, args, tally, prompt=size == 1), parser), size, chunk_words or CHUNK_WORDS)
    shown = sys.stderr.isatty() and not (args.quiet or (args.output == "-" and sys.stdout.isatty()))
    with tqdm(total=_size(paths), unit="B", unit_scale=True, leave=False, disable=not shown, file=sys.stderr) as bar:

        def parsed() -> "Iterator[tuple[ConlluSentence, T]]":
            for chunk in chunks:
                # Without the trees of the file, which the model must not see.
                words = [replace(sentence.words, heads=None, labels=None) for sentence in chunk]
                yield from zip(chunk, parse(parser, words), strict=True)
                tally.add(words)
                bar.update(sum(_bytes_read(sentence, args.format) for sentence in chunk))
            if not tally.sentences:
                raise TreeparseError(f"no valid sentence is left in {', '.join(map(str, paths))}")

        write(parsed())
    if not args.quiet:
        print(tally.summary(time.perf_counter() - started, remark()), file=sys.stderr)
    return 0


@dataclass(slots=True)
class _Tally:
    sentences: int = 0  # parsed
    words: int = 0
    left_out: int = 0  # faulty sentences

    def add(self, sentences: "Sequence[Sentence]") -> None:
        self.sentences += len(sentences)
        self.words += sum(map(len, sentences))

    def summary(self, seconds: float, remark: str) -> str:
        sums = (
            f"{counted(self.sentences, 'sentence')}, {counted(self.words, 'word')}, {self.words / seconds:,.0f} words/s"
        )
        left_out = f"{counted(self.left_out, 'sentence')} left out" if self.left_out else ""
        return f"treeparse: {'; '.join(filter(None, (sums, remark, left_out)))}"


def counted(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _size(paths: Sequence[Path]) -> int | None:
    """The input's size in bytes, where it can be known."""
    if all(path.is_file() and path.suffix != ".gz" for path in paths):
        return sum(path.stat().st_size for path in paths)
    return None


def _read(
    paths: Sequence[Path], args: argparse.Namespace, tally: _Tally, *, prompt: bool
) -> "Iterator[ConlluSentence]":
    from treeparse.data.conllu import read_conllu, read_text

    on_invalid = _counter(tally) if args.skip_invalid else None
    count = 0
    for path in paths:
        sentences = (
            read_text(path, first=count + 1)
            if args.format == "text"
            else read_conllu(path, prompt=prompt, on_invalid=on_invalid)
        )
        for sentence in sentences:
            count += 1
            yield sentence


def _counter(tally: _Tally) -> "Callable[[DataError], None]":
    def leave_out(fault: "DataError") -> None:
        if fault.line is None:  # the file holds no sentence at all
            raise fault
        tally.left_out += 1

    return leave_out


def _checked(sentences: "Iterable[ConlluSentence]", parser: "Parser") -> "Iterator[ConlluSentence]":
    """The sentences; one that lacks tags which the model reads is named with its place."""
    from treeparse.core import DataError, TreeparseError

    for sentence in sentences:
        try:
            parser.indexer.features.check(sentence.words)
        except TreeparseError as error:
            place = {"source": sentence.source, "line": sentence.line, "sent_id": sentence.sent_id}
            raise DataError(str(error), **place) from error
        yield sentence


def _chunks(sentences: "Iterable[ConlluSentence]", size: int, most_words: int) -> "Iterator[list[ConlluSentence]]":
    """Lists of that many sentences, or fewer where they are long."""
    chunk: list[ConlluSentence] = []
    words = 0
    for sentence in sentences:
        chunk.append(sentence)
        words += len(sentence.words)
        if len(chunk) == size or words >= most_words:
            yield chunk
            chunk, words = [], 0
    if chunk:
        yield chunk


def _bytes_read(sentence: "ConlluSentence", form: str) -> int:
    return len((sentence.text if form == "conllu" else " ".join(sentence.words.forms) + "\n").encode())
