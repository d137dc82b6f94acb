"""The sentences of a corpus, in order, first as bytes and then read, and counts of those that a request leaves out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from treeparse.corpus.corpus_progress import CorpusSummary
from treeparse.corpus.request import CorpusInput, CorpusPart, CorpusRequest
from treeparse.data.conllu import LONGEST_FILE, LONGEST_INPUT, NO_SENTENCE, ConlluSentence, RawSentence
from treeparse.data.text.tokenizers import tokenised
from treeparse.data.validation import TreeCheck
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Ensemble, Parser

RawOrEnd = RawSentence | DataError | None
"""The bytes of a sentence, a line or a document; the fault of a file that is left out; None after an output's last."""
SentenceOrEnd = ConlluSentence | DataError | None
"""A sentence, the fault of one that is left out, or None after the last sentence of an output."""


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


class SentenceReader:
    """Reads the sentences of a request from their bytes, and counts those that it leaves out."""

    model: Parser | Ensemble
    request: CorpusRequest

    def __init__(self, request: CorpusRequest, model: Parser | Ensemble) -> None:
        self.request, self.model = request, model
        self._reader, self._tokenizer, trees = request.reader(), request.load_tokenizer(), request.trees
        single_root = model.networks[0].config.single_root
        self._check = None
        if trees.keep_heads:
            self._check = TreeCheck(single_root, partial=True)
        elif trees.within:
            self._check = TreeCheck(single_root, partial=True, heads=False)

    def read(self, items: Iterable[RawOrEnd], summary: CorpusSummary) -> tuple[list[SentenceOrEnd], DataError | None]:
        """Return the sentences, the faults of those that are left out, and Nones, up to the fault that ends the work.

        That fault is the second value, None if there is none.
        """
        sentences: list[SentenceOrEnd] = []
        for item in items:
            if isinstance(item, RawSentence):
                try:
                    sentences += self._read(item, summary)
                except DataError as fault:
                    return sentences, fault
            else:
                sentences.append(item)
        return sentences, None

    def _read(self, item: RawSentence, summary: CorpusSummary) -> Iterator[ConlluSentence | DataError]:
        """Yield the valid sentences of an item that are not too long, and the faults of the others."""
        try:
            sentences = self._split(self._reader.sentences(item, self._check))
        except DataError as fault:
            if not self.request.skip_invalid:
                raise
            summary.invalid_sentences += 1
            yield fault
            return
        longest = self.request.max_words
        for number, sentence in enumerate(sentences):
            count = len(sentence.words)
            if longest is not None and count > longest:
                summary.long_sentences += 1
                yield sentence.fault(f"it has {count:,} words, and at most {longest:,} are parsed")
                continue
            check_sentence(sentence, self.model)
            if item.file or number:
                ordinal = item.ordinal + item.file * LONGEST_FILE + number * LONGEST_INPUT
                sentence = replace(sentence, ordinal=ordinal)
            yield sentence

    def _split(self, sentences: Sequence[ConlluSentence]) -> Sequence[ConlluSentence]:
        """Return sentences; the tokenizer, if there is one, splits paragraphs into them."""
        if self._tokenizer is None:
            return sentences
        return [sentence for paragraph in sentences for sentence in tokenised(paragraph, self._tokenizer)]


def check_sentence(sentence: ConlluSentence, model: Parser | Ensemble) -> None:
    """Raise with file and line if a sentence lacks tags that the model reads."""
    try:
        model.check(sentence.words)
    except TreeparseError as error:
        raise sentence.fault(str(error)) from error


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
