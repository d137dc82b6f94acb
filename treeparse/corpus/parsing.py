"""Parses a corpus: sentences are read and parsed by chunks, and each output is written whole or not at all."""

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from treeparse.corpus.progress import CorpusObserver, CorpusSummary
from treeparse.corpus.request import CorpusPart, CorpusRequest, list_parts, total_size
from treeparse.corpus.sentences import OrderedSentence, SentenceOrEnd, check_tags, chunks_of, read_parts
from treeparse.corpus.trees import TreeRequest
from treeparse.corpus.writers.writer import Writer, write_results
from treeparse.data.mapping import Progress
from treeparse.data.parses import NBestList, Parse
from treeparse.data.text.rawtext import RawTextCheck
from treeparse.errors import DataError
from treeparse.model import Ensemble, Parser
from treeparse.model.inference.any_parser import made_ahead
from treeparse.model.inference.given import UnfitSentenceError
from treeparse.sentence import Sentence

CHUNK = 4000  # sentences: enough for a good number of batches, which threads share
CHUNK_WORDS = 100_000  # bounds the memory where sentences are long
CHUNK_TREE_WORDS = 1_000_000  # words of all trees of a chunk: bounds the memory where lists are long


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
    started, corpus_parser = time.perf_counter(), _CorpusParser(model, request, observer or CorpusObserver())
    writer = request.writer()
    if request.tags:
        model.check_tags()
    summary = corpus_parser.summary
    new = [part for part in parts if not (request.skip_existing and os.path.isfile(part.target))]
    summary.existing_outputs = len(parts) - len(new)
    corpus_parser.observer.start(total_size(new))
    results = corpus_parser.results(new)
    if request.output != "-":  # after standard output a program may wait for a parse before it sends the next sentence
        results = made_ahead(results, model.device)
    corpus_parser.write(new, chain.from_iterable(results), writer)
    summary.seconds = time.perf_counter() - started
    return summary


@dataclass
class _CorpusParser:
    """Reads, parses and writes the sentences of a request; counts and reports them."""

    model: Parser | Ensemble
    request: CorpusRequest
    observer: CorpusObserver
    summary: CorpusSummary = field(default_factory=CorpusSummary)

    def results(self, parts: Sequence[CorpusPart]) -> Iterator[list[NBestList | None]]:
        """Yield the results of the sentences of all parts, by chunks; None comes after the last result of each part."""
        single_root = self.model.networks[0].config.single_root
        read = read_parts(parts, self.request, self.summary, single_root=single_root)
        words = min(CHUNK_WORDS, max(1, CHUNK_TREE_WORDS // self.request.trees.k))
        check = RawTextCheck(self.model.known_words(), self.model.multiword_tokens())
        for full_chunk in chunks_of(check_tags(read, self.model), self.request.chunk or CHUNK, words):
            if self.request.format == "text":
                forms = (item.sentence.words.forms for item in full_chunk if item is not None)
                if doubt := check.check(forms):
                    self.observer.warn(doubt)
            chunk, lists, fault = self._parse_chunk(full_chunk)
            self.summary.add([item.sentence.words for item in chunk if item is not None])
            self.summary.short_lists += sum(len(parses) < self.request.trees.k for parses in lists)
            parses = iter(lists)
            yield [None if item is None else NBestList(item.sentence, tuple(next(parses))) for item in chunk]
            if fault is not None:
                raise fault

    def _parse_chunk(
        self, chunk: list[SentenceOrEnd]
    ) -> tuple[list[SentenceOrEnd], Sequence[Sequence[Parse]], DataError | None]:
        """Return a chunk without the sentences that no tree fits, its trees, and the error that ends it, if any."""
        fault, reported = None, set[int]()
        while True:
            items = [item for item in chunk if item is not None]
            words = [_visible_words(item.sentence.words, self.request.trees) for item in items]
            try:
                progress = self._progress(items, reported)
                ordinals = [item.ordinal for item in items]
                return chunk, self.request.trees.find(self.model, words, ordinals, progress) if words else (), fault
            except UnfitSentenceError as error:
                unfit = items[error.index]
                index = next(index for index, item in enumerate(chunk) if item is unfit)
                if self.request.skip_invalid:
                    self.summary.invalid_sentences += 1
                    chunk = chunk[:index] + chunk[index + 1 :]
                    continue
                fault, chunk = unfit.sentence.fault(error.problem), chunk[:index]

    def _progress(self, items: Sequence[OrderedSentence], reported: set[int]) -> Progress:
        """Return the function that reports batches of the items; an item that is parsed again is reported once."""

        def advance(indices: Sequence[int]) -> None:
            batch = [items[index] for index in indices]
            self.observer.advance([item.sentence for item in batch if item.ordinal not in reported])
            reported.update(item.ordinal for item in batch)

        return advance

    def write(self, parts: Sequence[CorpusPart], results: Iterator[NBestList | None], writer: Writer) -> None:
        """Write each output up to its end; an error is reported with the number of complete outputs."""
        try:
            for number, part in enumerate(parts, 1):
                self.observer.start_output(number, len(parts))
                if self.request.has_folder:
                    os.makedirs(os.path.dirname(part.target), exist_ok=True)
                part_results = _until_none(results)
                write_results(part.target, writer, part_results)
                deque(part_results, maxlen=0)  # which a writer did not take: the next output begins after them
                self.summary.outputs += 1
        except BaseException:
            self.observer.fail(self.summary.outputs, len(parts))
            raise


def _visible_words(words: Sentence, trees: TreeRequest) -> Sentence:
    """Return the words with the parts of the input's tree that the model may see."""
    heads, labels = (words.heads, words.labels) if trees.keep_heads else (None, None)
    return replace(words, heads=heads, labels=labels, allowed=words.allowed if trees.within else None)


def _until_none(results: Iterator[NBestList | None]) -> Iterator[NBestList]:
    """Yield the results up to None."""
    for result in results:
        if result is None:
            return
        yield result
