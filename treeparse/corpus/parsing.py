"""Parses a corpus: sentences are read and parsed by chunks, and each output is written whole or not at all."""

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from treeparse.corpus.progress import CorpusObserver, CorpusSummary
from treeparse.corpus.request import CorpusPart, CorpusRequest, list_parts, total_size
from treeparse.corpus.sentences import OrderedSentence, SentenceOrEnd, check_tags, chunks_of, fault_at, read_parts
from treeparse.corpus.trees import TreeRequest
from treeparse.corpus.writers import Writer, write_results
from treeparse.data.mapping import Progress
from treeparse.data.parses import NBestList, Parse
from treeparse.data.text.rawtext import RawTextCheck
from treeparse.errors import DataError
from treeparse.model import Ensemble, Parser, tagging
from treeparse.model.inference.given import UnfitSentenceError
from treeparse.model.inference.streaming import made_ahead
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
    observer, summary, started = observer or CorpusObserver(), CorpusSummary(), time.perf_counter()
    writer = request.writer()
    if request.tags:
        tagging.check_tags(model)
    new = [part for part in parts if not (request.skip_existing and os.path.isfile(part.target))]
    summary.existing_outputs = len(parts) - len(new)
    observer.start(total_size(new))
    single_root = model.networks[0].config.single_root
    sentences = check_tags(read_parts(new, request, summary, single_root=single_root), model)
    words = min(CHUNK_WORDS, max(1, CHUNK_TREE_WORDS // request.trees.k))
    chunks = chunks_of(sentences, request.chunk or CHUNK, words)
    if request.format == "text":
        chunks = _warned(chunks, model, observer)
    results = _parsed(chunks, model, request, summary, observer)
    if request.output != "-":  # after standard output a program may wait for a parse before it sends the next sentence
        results = made_ahead(results, model.device)
    _write(new, chain.from_iterable(results), writer, request, summary, observer)
    summary.seconds = time.perf_counter() - started
    return summary


def _warned(
    chunks: Iterator[list[SentenceOrEnd]], model: Parser | Ensemble, observer: CorpusObserver
) -> Iterator[list[SentenceOrEnd]]:
    """Pass chunks on; warn once if they look like raw text."""
    check = RawTextCheck(model.known_words(), model.multiword_tokens())
    for chunk in chunks:
        if doubt := check.look(item.sentence.words.forms for item in chunk if item is not None):
            observer.warn(doubt)
        yield chunk


def _parsed(
    chunks: Iterable[list[SentenceOrEnd]],
    model: Parser | Ensemble,
    request: CorpusRequest,
    summary: CorpusSummary,
    observer: CorpusObserver,
) -> Iterator[list[NBestList | None]]:
    """Yield the results of each chunk, with None at the ends of outputs."""
    for full_chunk in chunks:
        chunk, lists, fault = _parse_chunk(full_chunk, model, request, summary, observer)
        summary.add([item.sentence.words for item in chunk if item is not None])
        summary.short_lists += sum(len(parses) < request.trees.k for parses in lists)
        parses = iter(lists)
        yield [None if item is None else NBestList(item.sentence, tuple(next(parses))) for item in chunk]
        if fault is not None:
            raise fault


def _parse_chunk(
    chunk: list[SentenceOrEnd],
    model: Parser | Ensemble,
    request: CorpusRequest,
    summary: CorpusSummary,
    observer: CorpusObserver,
) -> tuple[list[SentenceOrEnd], Sequence[Sequence[Parse]], DataError | None]:
    """Return a chunk without the sentences that no tree fits, its trees, and the fault that ends it, if one does."""
    fault, reported = None, set[int]()
    while True:
        items = [item for item in chunk if item is not None]
        words = [_visible_words(item.sentence.words, request.trees) for item in items]
        try:
            progress = _advancing(observer, items, reported)
            ordinals = [item.ordinal for item in items]
            return chunk, request.trees.find(model, words, ordinals, progress) if words else (), fault
        except UnfitSentenceError as error:
            unfit = items[error.index]
            index = next(index for index, item in enumerate(chunk) if item is unfit)
            if request.skip_invalid:
                summary.invalid_sentences += 1
                chunk = chunk[:index] + chunk[index + 1 :]
                continue
            fault, chunk = fault_at(unfit.sentence, error.problem), chunk[:index]


def _advancing(observer: CorpusObserver, items: Sequence[OrderedSentence], reported: set[int]) -> Progress:
    """Return what reports batches of the items; an item that is parsed again is not reported again."""

    def advance(indices: Sequence[int]) -> None:
        batch = [items[index] for index in indices]
        observer.advance([item.sentence for item in batch if item.ordinal not in reported])
        reported.update(item.ordinal for item in batch)

    return advance


def _visible_words(words: Sentence, trees: TreeRequest) -> Sentence:
    """Return the words with the parts of the input's tree that the model may see."""
    heads, labels = (words.heads, words.labels) if trees.keep_heads else (None, None)
    return replace(words, heads=heads, labels=labels, allowed=words.allowed if trees.within else None)


def _write(
    parts: Sequence[CorpusPart],
    results: Iterator[NBestList | None],
    writer: Writer,
    request: CorpusRequest,
    summary: CorpusSummary,
    observer: CorpusObserver,
) -> None:
    """Write each output up to its end; an error is reported with the number of outputs that were written."""
    try:
        for number, part in enumerate(parts, 1):
            observer.start_output(number, len(parts))
            if request.has_folder:
                os.makedirs(os.path.dirname(part.target), exist_ok=True)
            own = _until_end(results)
            write_results(part.target, writer, own)
            deque(own, maxlen=0)  # what a writer left: the next output begins after it
            summary.outputs += 1
    except BaseException:
        observer.fail(summary.outputs, len(parts))
        raise


def _until_end(results: Iterator[NBestList | None]) -> Iterator[NBestList]:
    """Yield the results up to None."""
    for result in results:
        if result is None:
            return
        yield result
