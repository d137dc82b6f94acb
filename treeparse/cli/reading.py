"""What the commands that parse share: arguments, sentences read by chunks, the progress bar and the closing line."""

import argparse
import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from treeparse.cli.common import add_import_argument, counted, output_file, positive
from treeparse.cli.conditions import add_condition_arguments
from treeparse.cli.models import add_combine_argument, add_precision_argument, load_models
from treeparse.cli.outputs import add_overwrite_argument
from treeparse.cli.parts import Part, Plan, Source, Tally, is_folder, shard_argument, total_size
from treeparse.cli.tokenizing import Splitter, add_tokenizer_argument, splitter
from treeparse.errors import DataError, TreeparseError
from treeparse.names import INPUT_FORMATS
from treeparse.sentence import Sentence

if TYPE_CHECKING:
    from treeparse.data.conllu import ConlluSentence
    from treeparse.data.mapping import Progress
    from treeparse.model import Ensemble, Parser
    from treeparse.progress import ParsingBar

CHUNK = 4000  # enough for a good number of batches, which threads share
CHUNK_WORDS = 100_000  # bounds the memory where sentences are long
LONGEST_FILE = 2**32  # sentences of a file, at most: what lies between the places of two files' first sentences
LONGEST_INPUT = 2**64  # lines of all files, at most: what lies between the places of a raw line's sentences

CHUNKS = """\
Sentences are read and parsed --chunk at a time. From a terminal, or with --chunk 1, each one is parsed as soon as it
is complete: by its line end in text, by the blank line behind it in CoNLL-U. A program that waits for each parse
before it sends the next sentence needs --chunk 1."""

CORPORA = """\
Where OUT is a folder (one that exists, or a name that ends in /), each input gets a file of its own in it, under its
name; inputs of several folders keep the folders below the one they share. A file appears once it is complete, and
stays when a later one is faulty; the same command with --skip-existing goes on from there.

--shard i/n lets n processes or machines share the work, each started with another i from 1 to n, without a word
between them. With a folder they share out the files, by size: the same command, with -o folder/, in every process.
With one output each takes a run of sentences as long, in bytes, as the others': -o part-$i.conllu, and
cat part-1.conllu part-2.conllu ... is the whole. A shard that gets nothing ends well, too. All processes must find the
same inputs: write no output where the patterns of IN would match it. For example:
  seq 4 | xargs -P 4 -I{} treeparse COMMAND MODEL 'corpus/*.conllu' -o parsed/ --shard {}/4 --threads 1 -q"""

T = TypeVar("T")


class Placed(NamedTuple):
    """A sentence and its place in the whole input, the same whatever is left out and in whichever shard."""

    sentence: "ConlluSentence"
    place: int


class Work(NamedTuple):
    """Sentences that are parsed at once, with their places, and what is told of each batch of them."""

    sentences: "Sequence[Sentence]"
    places: Sequence[int]
    progress: "Progress"


def add_arguments(parser: argparse.ArgumentParser, *, output: str, lists_of_best: bool = False) -> None:
    """Declare the arguments; ``output`` is the help of ``-o``, ``lists_of_best`` says what is made."""
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", help="the folder of a model, or of its run; several parse as one"
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="IN",
        help="files, plain or compressed (.gz, .bz2, .xz, .zst); globs; - for standard input",
    )
    parser.add_argument("-o", "--output", type=output_file, default="-", metavar="OUT", help=output)
    add_overwrite_argument(parser)
    parser.add_argument(
        "--format",
        choices=INPUT_FORMATS,
        default="conllu",
        help="of the input; text has a tokenised sentence a line, or with --tokenizer a paragraph of raw text",
    )
    add_tokenizer_argument(parser)
    parser.add_argument(
        "--drop-empty", action="store_true", help="leave out empty nodes (8.1): without DEPS they are not valid UD"
    )
    parser.add_argument(
        "--skip-invalid",
        action="store_true",
        help="leave out CoNLL-U sentences that are faulty, with a count; in a folder, empty files stay empty",
    )
    parser.add_argument(
        "--max-words", type=positive, metavar="N", help="leave out sentences of more than N words, with a count"
    )
    parser.add_argument(
        "--shard", type=shard_argument, metavar="I/N", help="parse the I-th of N parts of the input, see below"
    )
    parser.add_argument(
        "--skip-existing", action="store_true", help="leave output files that are there as they are, see below"
    )
    parser.add_argument(
        "--batch-words", type=positive, default=5000, metavar="N", help="words parsed at once (default: 5000)"
    )
    parser.add_argument("--chunk", type=positive, metavar="N", help=f"sentences read ahead (default: {CHUNK})")
    add_condition_arguments(parser)
    add_combine_argument(parser, lists=lists_of_best)
    add_precision_argument(parser)
    add_import_argument(parser)


def parse_files(
    args: argparse.Namespace,
    plan: Plan,
    parse: "Callable[[Parser | Ensemble, Work], Sequence[T]]",
    write: "Callable[[str, Iterator[tuple[ConlluSentence, T]]], object]",
    *,
    chunk_words: int | None = None,
    remark: Callable[[], str] = str,
) -> int:
    """Parse the sentences of all files by chunks and write them; show progress, and the sums at the end.

    Args:
        args: the command's arguments, :func:`add_arguments`'s among them.
        plan: the models, inputs and outputs of the arguments.
        parse: the results for a list of sentences, which come without the trees of the file but for what is to be kept
            of them.
        write: takes an output and its sentences with their results, in order.
        chunk_words: a chunk with so many words has enough sentences.
        remark: what the closing line says besides, if anything.
    """
    from treeparse.progress import ParsingBar

    split, parts = splitter(args), plan.parts
    left = [part for part in parts if not (args.skip_existing and os.path.isfile(part.target))]
    parser = load_models(plan.models, args)
    from treeparse.model.streaming import made_ahead  # which needs torch

    tally, started = Tally(args.max_words, there=len(parts) - len(left)), time.perf_counter()
    size = args.chunk or (1 if Path("-") in plan.paths and sys.stdin.isatty() else CHUNK)
    single_root = parser.networks[0].config.single_root
    read = _read(left, args, tally, split, prompt=size == 1, single_root=single_root)
    chunks = _chunks(_checked(read, parser), size, chunk_words or CHUNK_WORDS)
    hidden = args.quiet or (args.output == "-" and sys.stdout.isatty())
    with ParsingBar(total_size(left), hidden=hidden) as bar:
        if args.format == "text" and not args.quiet:
            chunks = _looked_at(chunks, parser, bar)
        parsed = _parsed(chunks, functools.partial(parse, parser), args, tally, bar)
        if args.output != "-":  # behind which somebody may wait for a parse before the next sentence is sent
            parsed = made_ahead(parsed, parser.device)
        _write_parts(left, chain.from_iterable(parsed), write, args, tally, bar)
    if not args.quiet:
        print(tally.summary(time.perf_counter() - started, remark()), file=sys.stderr)
    return 0


def _looked_at(
    chunks: Iterator[list[Placed | None]], parser: "Parser | Ensemble", bar: "ParsingBar"
) -> Iterator[list[Placed | None]]:
    """The chunks; a warning where they look like raw text, once."""
    from treeparse.data.text.rawtext import RawTextCheck

    check = RawTextCheck(parser.known_words(), parser.multiword_tokens())
    for chunk in chunks:
        if doubt := check.look(item.sentence.words.forms for item in chunk if item is not None):
            bar.write(f"treeparse: warning: {doubt}", file=sys.stderr)
        yield chunk


def _parsed(
    chunks: Iterable[list[Placed | None]],
    parse: "Callable[[Work], Sequence[T]]",
    args: argparse.Namespace,
    tally: Tally,
    bar: "ParsingBar",
) -> "Iterator[list[tuple[ConlluSentence, T] | None]]":
    """The sentences of each chunk with their results, among the marks of the ends of outputs."""
    for given in chunks:
        chunk, results, fault = _fitting(given, parse, args, tally, bar)
        tally.add([item.sentence.words for item in chunk if item is not None])
        found = iter(results)
        yield [None if item is None else (item.sentence, next(found)) for item in chunk]
        if fault is not None:
            raise fault


def _fitting(
    chunk: list[Placed | None],
    parse: "Callable[[Work], Sequence[T]]",
    args: argparse.Namespace,
    tally: Tally,
    bar: "ParsingBar",
) -> "tuple[list[Placed | None], Sequence[T], DataError | None]":
    """A chunk without sentences that no tree fits, its results, and the fault before which it ends, if it does."""
    from treeparse.model.given import UnfitSentenceError

    fault, shown = None, set[int]()
    while True:
        items = [item for item in chunk if item is not None]
        words = [_known(item.sentence.words, args) for item in items]
        try:
            work = Work(words, [item.place for item in items], _advancing(bar, items, args.format, shown))
            return chunk, parse(work) if words else (), fault
        except UnfitSentenceError as error:
            unfit, sentence = items[error.place], items[error.place].sentence
            end = next(place for place, item in enumerate(chunk) if item is unfit)
            if args.skip_invalid:
                tally.left_out += 1
                chunk = chunk[:end] + chunk[end + 1 :]
                continue
            place = {"source": sentence.source, "line": sentence.line, "sent_id": sentence.sent_id}
            fault, chunk = DataError(error.problem, **place), chunk[:end]


def _advancing(bar: "ParsingBar", items: Sequence[Placed], form: str, shown: set[int]) -> "Progress":
    """What moves the bar by batches of the items; an item that is parsed again moves it no further."""

    def advance(indices: Sequence[int]) -> None:
        if bar.disable:
            return
        new = [items[index].sentence for index in indices if items[index].place not in shown]
        shown.update(items[index].place for index in indices)
        bar.advance(len(new), sum(len(one.words) for one in new), sum(_bytes_read(one, form) for one in new))

    return advance


def _known(words: "Sentence", args: argparse.Namespace) -> "Sentence":
    """The words with what is to be kept of the file's trees, and without the rest, which the model must not see."""
    heads, labels = (words.heads, words.labels) if args.keep_heads else (None, None)
    return replace(words, heads=heads, labels=labels, allowed=words.allowed if args.within else None)


def conllu_suffix(args: argparse.Namespace) -> str | None:
    """The suffix of CoNLL-U outputs in a folder; None for that of the inputs."""
    return ".conllu" if args.format == "text" else None


def _write_parts(
    parts: Sequence[Part],
    parsed: "Iterator[tuple[ConlluSentence, T] | None]",
    write: "Callable[[str, Iterator[tuple[ConlluSentence, T]]], object]",
    args: argparse.Namespace,
    tally: Tally,
    bar: "ParsingBar",
) -> None:
    """Write each output up to the mark of its end; say how many files are done when a fault ends the work."""
    folder = is_folder(args.output)
    try:
        for number, part in enumerate(parts, 1):
            if folder:
                bar.say(f"file {number:,}/{len(parts):,}")
                os.makedirs(os.path.dirname(part.target), exist_ok=True)
            write(part.target, _until_end(parsed))
            tally.files += folder
    except BaseException:
        if folder and not args.quiet:
            done = f"{tally.files:,} of {counted(len(parts), 'file')} done"
            print(f"treeparse: {done}; the same command with --skip-existing does the others", file=sys.stderr)
        raise


def _until_end(items: Iterator[T | None]) -> Iterator[T]:
    """The items up to the mark."""
    for item in items:
        if item is None:
            return
        yield item


def _read(
    parts: Sequence[Part],
    args: argparse.Namespace,
    tally: Tally,
    split: Splitter,
    *,
    prompt: bool,
    single_root: bool,
) -> Iterator[Placed | None]:
    """The sentences to parse, and a mark at the end of each output."""
    may_be_empty = args.shard is not None or is_folder(args.output)
    for part in parts:
        kept = False
        for sentence, place in _sentences(part.sources, args, tally, split, prompt=prompt, single_root=single_root):
            if args.max_words is not None and len(sentence.words) > args.max_words:
                tally.long += 1
            else:
                kept = True
                yield Placed(sentence, place)
        if not (kept or may_be_empty):
            limit = f" of at most {args.max_words:,} words" if tally.long else ""
            paths = ", ".join(str(source.path) for source in part.sources)
            raise TreeparseError(f"no valid sentence{limit} is left in {paths}")
        yield None


def _sentences(
    sources: Sequence[Source],
    args: argparse.Namespace,
    tally: Tally,
    split: Splitter,
    *,
    prompt: bool,
    single_root: bool,
) -> Iterator[Placed]:
    """The sound sentences of an output, of any length."""
    from treeparse.data.conllu import NO_SENTENCE, read_conllu
    from treeparse.data.text.tokenised import read_text

    on_invalid = _counter(tally) if args.skip_invalid else None
    known = {"require_trees": args.keep_heads, "partial": args.keep_heads, "possible_heads": args.within}
    read = functools.partial(read_conllu, prompt=prompt, on_invalid=on_invalid, single_root=single_root, **known)
    before = 0  # lines of the files before, by which those of text are named
    for source in sources:
        try:
            sentences = (
                read_text(source.path, first=before + 1, span=source.span)
                if args.format == "text"
                else read(source.path, span=source.span)
            )
            last = -1
            for sentence in sentences if source.span is None or source.span else ():
                last = sentence.ordinal
                for number, own in enumerate(split(sentence)):
                    yield Placed(own, number * LONGEST_INPUT + source.number * LONGEST_FILE + last)
            begun = source.span is not None and source.span.start > 0  # by another shard
            if args.format == "text":
                before += sum(1 for _ in read_text(source.path)) if begun else last + 1
        except DataError as fault:
            if not (fault.problem == NO_SENTENCE and args.skip_invalid and is_folder(args.output)):
                raise
            tally.empty += 1


def _counter(tally: Tally) -> "Callable[[DataError], None]":
    def leave_out(fault: "DataError") -> None:
        if fault.line is None:  # the file holds no sentence at all
            raise fault
        tally.left_out += 1

    return leave_out


def _checked(items: Iterable[Placed | None], parser: "Parser | Ensemble") -> Iterator[Placed | None]:
    """The sentences; one that lacks tags which the model reads is named with its place in the file."""
    for item in items:
        if item is not None:
            sentence = item.sentence
            try:
                parser.check(sentence.words)
            except TreeparseError as error:
                place = {"source": sentence.source, "line": sentence.line, "sent_id": sentence.sent_id}
                raise DataError(str(error), **place) from error
        yield item


def _chunks(items: Iterable[Placed | None], size: int, most_words: int) -> Iterator[list[Placed | None]]:
    """Lists of that many sentences, or fewer where they are long, with the marks among them."""
    chunk: list[Placed | None] = []
    sentences = words = 0
    try:
        for item in items:
            chunk.append(item)
            if item is not None:
                sentences += 1
                words += len(item.sentence.words)
            if sentences == size or words >= most_words:
                yield chunk
                chunk, sentences, words = [], 0, 0
    except (TreeparseError, OSError):
        yield chunk  # what was whole before the fault is parsed and written
        raise
    yield chunk


def _bytes_read(sentence: "ConlluSentence", form: str) -> int:
    return len((sentence.text if form == "conllu" else " ".join(sentence.words.forms) + "\n").encode())
