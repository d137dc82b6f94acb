"""The sentences of a corpus, in order, first as bytes and then read, and counts of those that a request leaves out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from treeparse.corpus.progress import CorpusSummary
from treeparse.corpus.request import CorpusInput, CorpusPart, CorpusRequest
from treeparse.data.conllu import NO_SENTENCE, ConlluSentence, RawSentence, parse_conllu, raw_conllu
from treeparse.data.text.tokenised import parse_text, raw_text
from treeparse.data.text.tokenizers import tokenised
from treeparse.data.validation import TreeCheck
from treeparse.errors import DataError, TreeparseError

if TYPE_CHECKING:
    from treeparse.model import Ensemble, Parser

LONGEST_FILE = 2**32  # sentences of a file, at most: the distance of the ordinals of two files' first sentences
LONGEST_INPUT = 2**64  # lines of all files, at most: the distance of the ordinals of a raw line's sentences


class RawItem(NamedTuple):
    """A sentence, or a line of raw text, whose bytes have not been read yet.

    Attributes:
        raw: the bytes and their place in the file.
        file: the number of the file among all inputs, from 0.
        lines_before: sentences of text in the files before, because the name of a sentence is its number in all.
    """

    raw: RawSentence
    file: int
    lines_before: int = 0


class OrderedSentence(NamedTuple):
    """A sentence and its ordinal in the whole input, which neither left-out sentences nor shards change."""

    sentence: ConlluSentence
    ordinal: int
    size: int  # bytes of the input that it takes


RawItemOrEnd = RawItem | None
SentenceOrEnd = OrderedSentence | None
"""A sentence, or None after the last sentence of an output."""


def raw_parts(parts: Sequence[CorpusPart], request: CorpusRequest, summary: CorpusSummary) -> Iterator[RawItemOrEnd]:
    """Yield the sentences of all parts as bytes; None comes after the last sentence of each part.

    Raises:
        DataError: a file is faulty as a whole.
    """
    for part in parts:
        yield from _raw_items(part.inputs, request, summary)
        yield None


def _raw_items(inputs: Sequence[CorpusInput], request: CorpusRequest, summary: CorpusSummary) -> Iterator[RawItem]:
    lines_before, is_text = 0, request.format == "text"
    for source in inputs:
        last = -1
        try:
            if is_text:
                raws = raw_text(source.path, span=source.span)
            else:
                options = {"prompt": request.chunk == 1, "any_encoding": request.skip_invalid}
                raws = raw_conllu(source.path, span=source.span, **options)
            for raw in raws if source.span is None or source.span else ():
                last = raw.ordinal
                yield RawItem(raw, source.number, lines_before)
            if is_text:
                begun = source.span is not None and source.span.start > 0  # by another shard
                lines_before += sum(1 for _ in raw_text(source.path)) if begun else last + 1
        except DataError as fault:
            if not (fault.problem == NO_SENTENCE and request.skip_invalid and request.has_folder):
                raise
            summary.empty_files += 1


class SentenceReader:
    """Reads the sentences of a request from their bytes, and counts those that it leaves out."""

    def __init__(self, request: CorpusRequest, model: "Parser | Ensemble") -> None:
        self.request, self.model = request, model
        self._tokenizer, trees = request.load_tokenizer(), request.trees
        single_root = model.networks[0].config.single_root
        self._check = None
        if trees.keep_heads:
            self._check = TreeCheck(single_root, partial=True)
        elif trees.within:
            self._check = TreeCheck(single_root, partial=True, heads=False)

    def read(
        self, items: Iterable[RawItemOrEnd], summary: CorpusSummary
    ) -> tuple[list[SentenceOrEnd], DataError | None]:
        """Return the sentences, with the Nones between outputs, up to the first fault, and that fault."""
        sentences: list[SentenceOrEnd] = []
        try:
            for item in items:
                if item is None:
                    sentences.append(None)
                else:
                    sentences += self._sentences_of(item, summary)
        except DataError as fault:
            return sentences, fault
        return sentences, None

    def _sentences_of(self, item: RawItem, summary: CorpusSummary) -> Iterator[OrderedSentence]:
        """Yield the valid sentences of an item that are not too long; without a tokenizer one at most."""
        read = self._read(item, summary)
        if read is None:
            return
        first, size, longest = item.file * LONGEST_FILE + read.ordinal, len(item.raw.text), self.request.max_words
        for number, sentence in enumerate((read,) if self._tokenizer is None else tokenised(read, self._tokenizer)):
            if longest is not None and len(sentence.words) > longest:
                summary.long_sentences += 1
                continue
            check_sentence(sentence, self.model)
            yield OrderedSentence(sentence, number * LONGEST_INPUT + first, 0 if number else size)

    def _read(self, item: RawItem, summary: CorpusSummary) -> ConlluSentence | None:
        """Return the sentence of an item; None if it is faulty and left out."""
        if self.request.format == "text":
            return parse_text(item.raw, first=item.lines_before + 1)
        sentence = parse_conllu(item.raw, self._check)
        if isinstance(sentence, ConlluSentence):
            return sentence
        if not self.request.skip_invalid:
            raise sentence[0]
        summary.invalid_sentences += 1
        return None


def check_sentence(sentence: ConlluSentence, model: "Parser | Ensemble") -> None:
    """Raise with file and line if a sentence lacks tags that the model reads."""
    try:
        model.check(sentence.words)
    except TreeparseError as error:
        raise sentence.fault(str(error)) from error


def chunks_of(items: Iterable[RawItemOrEnd], size: int, words: int) -> Iterator[list[RawItemOrEnd]]:
    """Yield lists of ``size`` items, shorter ones if they have about ``words`` words, with the Nones between outputs.

    The lists depend on the bytes alone, so that they are the same in whatever process their sentences are read. An
    error is raised after the last list before it, so that the sentences before it are parsed and written.
    """
    chunk: list[RawItemOrEnd] = []
    count = length = 0
    try:
        for item in items:
            chunk.append(item)
            if item is not None:
                count += 1
                length += _words_at_most(item.raw.text)
            if count == size or length >= words:
                yield chunk
                chunk, count, length = [], 0, 0
    except (TreeparseError, OSError):
        yield chunk
        raise
    yield chunk


def _words_at_most(text: bytes) -> int:
    """Return a number that the words of a CoNLL-U sentence, or of a line of text, do not exceed."""
    lines = text.count(b"\n")
    return lines if lines > 1 else text.count(b" ") + text.count(b"\t") + 1
