"""The sentences of a corpus, in order, first as bytes and then read; counts and reports of their parsing."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from treeparse import terminal
from treeparse.corpus.request import CorpusInput, CorpusPart, CorpusRequest
from treeparse.data.conllu import NO_SENTENCE, ConlluSentence, RawSentence
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Ensemble, Parser

RawOrEnd = RawSentence | DataError | None
"""The bytes of a sentence, a line or a document; the fault of a file that is left out; None after an output's last."""
SentenceOrEnd = ConlluSentence | DataError | None
"""A sentence, the fault of one that is left out, or None after the last sentence of an output."""


@dataclass(slots=True)
class CorpusSummary:
    """Counts of a corpus that was parsed.

    Attributes:
        outputs: written files.
        existing_outputs: files that existed and stayed as they were.
        sentences: parsed sentences.
        words: parsed words.
        invalid_sentences: faulty sentences that were left out.
        long_sentences: sentences that were left out because of their length.
        empty_files: inputs without a sentence.
        short_lists: sentences with fewer trees than k.
        seconds: from the start of reading to the end of writing.
    """

    outputs: int = 0
    existing_outputs: int = 0
    sentences: int = 0
    words: int = 0
    invalid_sentences: int = 0
    long_sentences: int = 0
    empty_files: int = 0
    short_lists: int = 0
    seconds: float = 0.0

    def merge(self, other: "CorpusSummary") -> None:
        """Add the counts of another part of the work; the time stays."""
        for name, count in asdict(other).items():
            if name != "seconds":
                setattr(self, name, getattr(self, name) + count)


class CorpusObserver:
    """Receives reports while a corpus is parsed; a subclass overrides methods to show them, as a progress bar does."""

    def start(self, size: int | None) -> None:
        """Report the start; ``size`` is the number of bytes to read, None if unknown."""

    def start_output(self, number: int, count: int) -> None:
        """Report the start of an output, by its number from 1, out of ``count`` outputs."""

    def advance(self, sentences: int, words: int, size: int) -> None:
        """Report how many more sentences and words are parsed, and how many more bytes of the input are done."""

    def warn(self, message: str) -> None:
        """Report a doubt about the input."""
        warnings.warn(terminal.message(f"{message[0].upper()}{message[1:]}"), stacklevel=2)

    def fail(self, done: int, count: int) -> None:
        """Report that an error ended the work when ``done`` of ``count`` outputs were written."""


def raw_parts(parts: Sequence[CorpusPart], request: CorpusRequest, summary: CorpusSummary) -> Iterator[RawOrEnd]:
    """Yield the sentences of all parts as bytes; None comes after the last sentence of each part.

    Raises:
        DataError: a file is faulty as a whole.
    """
    for part in parts:
        yield from _raw_items(part.inputs, request, summary)
        yield None


def _raw_items(
    inputs: Sequence[CorpusInput], request: CorpusRequest, summary: CorpusSummary
) -> Iterator[RawSentence | DataError]:
    reader, before, counts = request.reader(), 0, len(inputs) > 1
    for source in inputs:
        last, others = -1, {} if source.name is None else {"source": source.name}
        try:
            for raw in reader.items(source.path, source.span) if source.span is None or source.span else ():
                last = raw.ordinal
                yield raw._replace(file=source.number, before=before, **others) if source.number or others else raw
            if reader.is_text and counts:
                begun = source.span is not None and source.span.start > 0  # by another shard
                before += reader.count(source.path) if begun else last + 1
        except DataError as error:
            fault = error if source.name is None else error.at(source.name)
            if not (fault.problem == NO_SENTENCE and request.skip_invalid and request.has_folder):
                raise fault from error.__cause__
            summary.empty_files += 1
            yield fault


def check_sentence(sentence: ConlluSentence, model: Parser | Ensemble) -> None:
    """Raise with file and line if a sentence lacks tags that the model reads."""
    try:
        model.check(sentence.words)
    except TreeparseError as error:
        raise sentence.fault(str(error)) from error


def mean_treebank_remark(model: Parser | Ensemble, treebank: str | None) -> str | None:
    """Say that no treebank is named though the model was trained on several; None if one is named."""
    if treebank is not None or len(model.treebanks) < 2:
        return None
    return f"no treebank is named, so the model uses the mean of {', '.join(model.treebanks)}: name one by --treebank"


def chunks_of(items: Iterable[RawOrEnd], size: int, words: int) -> Iterator[list[RawOrEnd]]:
    """Yield lists of ``size`` items, shorter ones if they have about ``words`` words, with the Nones between outputs.

    The lists depend on the bytes alone, so that they are the same in whatever process their sentences are read. An
    error is raised after the last list before it, so that the sentences before it are parsed and written.
    """
    chunk: list[RawOrEnd] = []
    count = length = 0
    try:
        for item in items:
            chunk.append(item)
            if isinstance(item, RawSentence):
                count += 1
                length += _words_at_most(item.text)
            if count == size or length >= words:
                yield chunk
                chunk, count, length = [], 0, 0
    except (TreeparseError, OSError):
        yield chunk
        raise
    yield chunk


def _words_at_most(text: bytes) -> int:
    """Return a number that the words of a CoNLL-U sentence, or of a line of text, do not exceed by much."""
    lines = text.count(b"\n")
    return lines if lines > 1 else text.count(b" ") + text.count(b"\t") + 1
