"""Parses a corpus: sentences are read and parsed by chunks, and each output is written whole or not at all.

`parse_documents` does it for other pipelines, whose texts are in memory.
"""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from typing import Generic, TypeVar

from treeparse.corpus.request import CorpusPart, CorpusRequest, list_parts, total_length
from treeparse.corpus.sentences import (
    CorpusObserver,
    CorpusSummary,
    RawOrEnd,
    SentenceOrEnd,
    check_sentence,
    chunks_of,
    mean_treebank_remark,
    raw_parts,
)
from treeparse.data.conllu import LONGEST_FILE, LONGEST_INPUT, ConlluSentence, RawSentence
from treeparse.data.outputs import atomic_output
from treeparse.data.parses import NBestList, Parse
from treeparse.data.raw_text import RawTextCheck, Tokenizer, tokenised
from treeparse.data.validation import TreeCheck
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Ensemble, Parser, TreeRequest
from treeparse.model.inference.any_parser import parse_ahead
from treeparse.model.inference.tree_request import UnfitSentenceError

CHUNK = 4000  # sentences: enough for a good number of batches, which threads share
CHUNK_WORDS = 100_000  # bounds the memory where sentences are long
SOURCE = "<documents>"  # in messages
CHUNK_TREE_WORDS = 1_000_000  # words of all trees of a chunk: bounds the memory where lists are long
T = TypeVar("T")
Result = NBestList | DataError | None
"""A sentence with its trees, the fault of a sentence that is left out, or None after the last result of an output."""
Advance = Callable[[int, int, int], object]
"""Called with numbers of sentences and words that have been parsed, and the length of the input that held them."""


def _line(fault: DataError) -> bytes:
    place = {"file": fault.source, "line": fault.line, "sent_id": fault.sent_id, "problem": fault.problem}
    known = {key: value for key, value in place.items() if value is not None}
    return f"{json.dumps(known, ensure_ascii=False)}\n".encode(errors="backslashreplace")  # names that are not UTF-8


def parse_corpus(
    model: Parser | Ensemble, request: CorpusRequest, *, observer: CorpusObserver | None = None
) -> CorpusSummary:
    """Parse the files of a request and write their trees.

    Raises:
        TreeparseError: an input is faulty, an output cannot be written, or no tree fits a sentence. Outputs that were
            complete before stay.
        OSError: a file cannot be read or written.
    """
    return parse_parts(model, request, list_parts(request), observer=observer)


def parse_parts(
    model: Parser | Ensemble,
    request: CorpusRequest,
    parts: Sequence[CorpusPart],
    *,
    observer: CorpusObserver | None = None,
) -> CorpusSummary:
    """Parse some of the parts that `list_parts` returns for a request; see `parse_corpus`."""
    writer = request.writer()
    if request.tags:
        model.check_tags()
    work, parser = CorpusWork(request, parts, observer), ChunkParser(model, request)

    def parse(items: Sequence[RawOrEnd], check: Callable[[], None]) -> ParsedChunk[Result]:
        return parser.parse(items, work.observer.advance, check)

    ahead = int(request.output != "-")  # a program may wait for a parse before it sends the next sentence
    with closing(parse_ahead(parse, work.chunks(), model.device, ahead=ahead)) as parsed:
        return work.write(chain.from_iterable(work.reported(parsed)), writer.write)


@dataclass
class ParsedChunk(Generic[T]):
    """A chunk that was parsed.

    Attributes:
        results: in order; those of `ChunkParser` are sentences with their trees, faults of sentences that are left
            out, and a None after each part.
        summary: the counts of the chunk.
        fault: the error that ends the work after these results.
        doubts: what may be wrong, by ``text`` and ``treebank``.
    """

    results: list[T]
    summary: CorpusSummary
    fault: DataError | None = None
    doubts: Mapping[str, str] = field(default_factory=dict)


class ChunkParser:
    """Reads and parses the sentences of chunks."""

    def __init__(self, model: Parser | Ensemble, request: CorpusRequest) -> None:
        self.model, self.request = model, request
        model.check_treebank(request.trees.treebank)
        self._doubts = {"treebank": mean_treebank_remark(model, request.trees.treebank)}
        self._reader, self._tokenizer, trees = request.reader(), request.load_tokenizer(), request.trees
        tree_check = TreeCheck(model.networks[0].config.single_root, partial=True, heads=trees.keep_heads)
        self._tree_check = tree_check if trees.keep_heads or trees.within else None
        self._text_check = RawTextCheck(
            model.known_words(), model.multiword_tokens(), has_lines=True, is_raw=self._tokenizer is not None
        )

    def parse(
        self,
        items: Sequence[RawOrEnd],
        advance: Advance = lambda *_: None,
        check: Callable[[], None] = lambda: None,
    ) -> ParsedChunk[Result]:
        """Parse a chunk; ``advance`` is called after each batch, ``check`` as by ``find_trees``."""
        parsed = ParsedChunk[Result]([], CorpusSummary())
        chunk, fault = self._read(items, parsed.summary)
        doubts = dict(self._doubts)
        if self._reader.is_text:
            doubts["text"] = self._text_check.check(sentence.words.forms for sentence in _sentences(chunk))
        parsed.doubts = {name: doubt for name, doubt in doubts.items() if doubt}
        size = sum(self._reader.length_of(item) for item in items if isinstance(item, RawSentence))
        reports = _Reports(_sentences(chunk), size, advance)
        chunk, lists, unfit = self._find_trees(chunk, parsed.summary, reports, check)
        parsed.fault = unfit or fault
        sentences = _sentences(chunk)
        parsed.summary.sentences += len(sentences)
        parsed.summary.words += sum(len(sentence.words) for sentence in sentences)
        parsed.summary.short_lists += sum(len(parses) < self.request.trees.k for parses in lists)
        parses = iter(lists)
        parsed.results = [
            NBestList(item, tuple(next(parses))) if isinstance(item, ConlluSentence) else item for item in chunk
        ]
        return parsed

    def _read(self, items: Iterable[RawOrEnd], summary: CorpusSummary) -> tuple[list[SentenceOrEnd], DataError | None]:
        """Return the sentences, the faults of those that are left out, and Nones, up to the fault that ends the work.

        That fault is the second value, None if there is none.
        """
        sentences: list[SentenceOrEnd] = []
        for item in items:
            if isinstance(item, RawSentence):
                try:
                    sentences += self._read_item(item, summary)
                except DataError as fault:
                    return sentences, fault
            else:
                sentences.append(item)
        return sentences, None

    def _read_item(self, item: RawSentence, summary: CorpusSummary) -> Iterator[ConlluSentence | DataError]:
        """Yield the valid sentences of an item that are not too long, and the faults of the others."""
        try:
            sentences = self._reader.sentences(item, self._tree_check)
            if self._tokenizer is not None:
                sentences = [sentence for text in sentences for sentence in tokenised(text, self._tokenizer)]
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

    def _find_trees(
        self, chunk: list[SentenceOrEnd], summary: CorpusSummary, reports: "_Reports", check: Callable[[], None]
    ) -> tuple[list[SentenceOrEnd], Sequence[Sequence[Parse]], DataError | None]:
        """Return a chunk with faults for sentences that no tree fits, its trees, and the error that ends it, if any."""
        fault, trees = None, self.request.trees
        while True:
            sentences = _sentences(chunk)
            ordinals = [sentence.ordinal for sentence in sentences]
            try:
                report = partial(reports.add, sentences)
                lists = self.model.find_trees(sentences, trees, ordinals, progress=report, check=check)
                return chunk, lists, fault
            except UnfitSentenceError as error:
                unfit = sentences[error.index]
                index = next(index for index, item in enumerate(chunk) if item is unfit)
                problem = unfit.fault(error.problem)
                if self.request.skip_invalid:
                    summary.invalid_sentences += 1
                    chunk = [*chunk[:index], problem, *chunk[index + 1 :]]
                    continue
                fault, chunk = problem, chunk[:index]


def _sentences(chunk: Iterable[SentenceOrEnd]) -> list[ConlluSentence]:
    return [item for item in chunk if isinstance(item, ConlluSentence)]


class _Reports:
    """Report the batches of a chunk, each with its share of the size; a sentence that is parsed again counts once."""

    def __init__(self, sentences: Sequence[ConlluSentence], size: int, advance: Advance) -> None:
        self._words, self._size, self._advance = sum(len(sentence.words) for sentence in sentences), size, advance
        self._reported, self._reported_words = set[int](), 0

    def add(self, sentences: Sequence[ConlluSentence], indices: Sequence[int]) -> None:
        """Report the sentences at these indices."""
        batch = [sentences[index] for index in indices]
        batch = [sentence for sentence in batch if sentence.ordinal not in self._reported]
        self._reported.update(sentence.ordinal for sentence in batch)
        before, words = self._reported_words, sum(len(sentence.words.forms) for sentence in batch)
        self._reported_words += words
        share = self._size * self._reported_words // self._words - self._size * before // self._words
        self._advance(len(batch), words, share)


class CorpusWork:
    """The work on the parts of a request, in one process or several: its chunks, counts, reports and outputs.

    Attributes:
        observer: receives reports.
        summary: the counts up to now.
    """

    def __init__(self, request: CorpusRequest, parts: Sequence[CorpusPart], observer: CorpusObserver | None) -> None:
        self.request, self.observer, self.summary = request, observer or CorpusObserver(), CorpusSummary()
        self._started = time.perf_counter()
        self._parts = [part for part in parts if not (request.skip_existing and os.path.isfile(part.target))]
        self.summary.existing_outputs = len(parts) - len(self._parts)
        self.observer.start(total_length(self._parts, request.reader()))

    def chunks(self) -> Iterator[list[RawOrEnd]]:
        """Yield the sentences as bytes, by chunks to parse at once; None comes after each part."""
        words = min(CHUNK_WORDS, max(1, CHUNK_TREE_WORDS // self.request.trees.k))
        return chunks_of(raw_parts(self._parts, self.request, self.summary), self.request.chunk or CHUNK, words)

    def reported(self, chunks: Iterator[ParsedChunk[T]]) -> Iterator[list[T]]:
        """Yield the results of chunks and count them; say the first doubt of a name; raise a fault after its chunk."""
        said: set[str] = set()
        for parsed in chunks:
            self.summary.merge(parsed.summary)
            for name, doubt in parsed.doubts.items():
                if name not in said:
                    said.add(name)
                    self.observer.warn(doubt)
            yield parsed.results
            if parsed.fault is not None:
                raise parsed.fault

    def write(
        self, results: Iterator[T | DataError | None], write: Callable[[str, Iterator[T]], None]
    ) -> CorpusSummary:
        """Write each output up to its end; an error is reported with the number of complete outputs.

        Args:
            results: what is written, in order, with a None after the last one of each output; and the faults of
                sentences that are left out.
            write: writes an output.

        Returns:
            The counts of the whole work.
        """
        summary, count = self.summary, len(self._parts)
        try:
            for number, part in enumerate(self._parts, 1):
                self.observer.start_output(number, count)
                for target in (part.target, part.faults) if self.request.has_folder else ():
                    os.makedirs(os.path.dirname(target or part.target), exist_ok=True)
                part_results = self._of_part(results, part)
                write(part.target, part_results)
                deque(part_results, maxlen=0)  # which a writer did not take: the next output begins after them
                summary.outputs += 1
        except BaseException:
            self.observer.fail(summary.outputs, count)
            raise
        summary.seconds = time.perf_counter() - self._started
        return summary

    def _of_part(self, results: Iterator[T | DataError | None], part: CorpusPart) -> Iterator[T]:
        """Yield the results up to None; raise if there is none, unless a folder or a shard may have empty outputs.

        The list of faults is written before the output is complete: whoever finds the output has the list.
        """
        is_empty, request = True, self.request
        with nullcontext() if part.faults is None else atomic_output(part.faults) as faults:
            for result in results:
                if result is None:
                    break
                if not isinstance(result, DataError):
                    is_empty = False
                    yield result
                elif faults is not None:
                    faults.write(_line(result))
        if is_empty and request.shard is None and not request.has_folder:
            limit = f" of at most {request.max_words:,} words" if self.summary.long_sentences else ""
            raise TreeparseError(f"no valid sentence{limit} is left in {', '.join(str(i.path) for i in part.inputs)}")


def parse_documents(
    model: Parser | Ensemble,
    texts: Iterable[str],
    *,
    ids: Iterable[str | int] | None = None,
    tokenizer: str | Tokenizer | None = None,
    trees: TreeRequest | None = None,
    max_words: int | None = None,
) -> Iterator[list[NBestList]]:
    """Yield the sentences of each document with their trees, read ahead by some thousand documents.

    Each line of a text is a sentence of words between spaces or, with a tokenizer, a paragraph. A writer of
    `treeparse.corpus.writers` packs what is yielded, for example ``ConlluWriter().pack(sentences)``.

    Args:
        model: parses.
        texts: the documents; a blank one has no sentences.
        ids: of the documents; by default numbers from 1. The id of a sentence begins with its document's.
        tokenizer: splits paragraphs into sentences and words, as for `CorpusRequest`.
        trees: of every sentence; by default its parse.
        max_words: longer sentences are left out.

    Raises:
        DataError: a text holds what no file can hold, or no tree fits a sentence.
    """
    options = {"id_column": "id", "tokenizer": tokenizer, "max_words": max_words, "trees": trees or TreeRequest()}
    parser = ChunkParser(model, CorpusRequest([], format="jsonl", **options))
    sentences: list[NBestList] = []
    for chunk in chunks_of(_items(texts, count(1) if ids is None else ids), CHUNK, CHUNK_WORDS):
        parsed = parser.parse(chunk)
        for result in parsed.results:
            if result is None:
                yield sentences
                sentences = []
            elif isinstance(result, NBestList):
                sentences.append(result)
        if parsed.fault is not None:
            raise parsed.fault


def _items(texts: Iterable[str], ids: Iterable[str | int]) -> Iterator[RawOrEnd]:
    """Yield the documents as the reader of JSON Lines takes them, each with an end after it."""
    for number, (text, name) in enumerate(zip(texts, ids, strict=False)):
        if not isinstance(text, str):
            raise DataError(f"a document must be a string, got {text!r:.50}", source=SOURCE, line=number + 1)
        yield RawSentence(json.dumps({"text": text, "id": name}).encode(), SOURCE, number + 1, number)
        yield None
