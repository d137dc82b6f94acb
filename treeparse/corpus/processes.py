"""A corpus parsed by several processes: this process reads and writes, its workers parse.

Chunks and outputs are the same as with one process. A worker that dies ends the work.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import cache, partial
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any

import torch

from treeparse.corpus.corpus_parsing import ChunkParser, CorpusWork, ParsedChunk, Result
from treeparse.corpus.request import CorpusPart, CorpusRequest
from treeparse.corpus.sentences import CorpusObserver, CorpusSummary, RawOrEnd
from treeparse.corpus.writers import FileWriter
from treeparse.data.conllu import RawSentence
from treeparse.data.parses import NBestList
from treeparse.data.prefetch import process_context, submit_ahead
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.rules import RuleTally

Loader = Callable[[], Parser | Ensemble]
WorkerResult = tuple[ParsedChunk[Any], RuleTally | None]
"""A parsed chunk, whose sentences the writer has packed if it can, and the outcomes of the search by rules."""

CHUNKS = 2  # submitted ahead for each worker: the chunk that it parses, and the next one


def parse_with_jobs(
    load: Loader,
    request: CorpusRequest,
    parts: Sequence[CorpusPart],
    jobs: int,
    *,
    threads: int = 1,
    observer: CorpusObserver | None = None,
) -> CorpusSummary:
    """Parse parts of a request in several processes; the outputs are the same as from `treeparse.corpus.parse_parts`.

    Args:
        load: returns the model in each process; it must pickle. Weights that come from a folder are shared.
        request: the request; it must pickle, so its tokenizer must be a name.
        parts: of the request.
        jobs: number of processes that parse.
        threads: number of torch's threads of each.
        observer: receives reports, of chunks.

    Raises:
        TreeparseError: as `treeparse.corpus.corpus_parsing`; or a process died.
        OSError: a file cannot be read or written.
    """
    writer, work = request.writer(), CorpusWork(request, parts, observer)
    context = process_context(__name__)
    first = context.Process(target=int)  # waits for the imports: a signal meanwhile would leave a half-started worker
    first.start()
    first.join()
    stopped, running = context.Pipe(duplex=False)  # `stopped` is readable once `running` is closed
    with (
        stopped,
        ProcessPoolExecutor(jobs, context, _begin, (load, request, threads, stopped)) as pool,
        running,
        closing(submit_ahead(partial(_submit, pool), work.chunks(), CHUNKS * jobs)) as submitted,
    ):
        results = chain.from_iterable(work.reported(_parsed(submitted, work)))
        return work.write(results, writer.write_packed if writer.is_independent else writer.write)


def _submit(pool: ProcessPoolExecutor, items: list[RawOrEnd]) -> Future[WorkerResult]:
    try:
        return pool.submit(_parse, items)
    except BrokenProcessPool as error:  # raised after the results before it
        future = Future[WorkerResult]()
        future.set_exception(error)
        return future


def _parsed(
    submitted: Iterable[tuple[list[RawOrEnd], Future[WorkerResult]]], work: CorpusWork
) -> Iterator[ParsedChunk[Any]]:
    """Yield the parsed chunks; report their progress and the outcomes of the search by rules."""
    reader = work.request.reader()
    for items, future in submitted:
        raw_items = [item for item in items if isinstance(item, RawSentence)]
        try:
            parsed, tally = future.result()
        except BrokenProcessPool as error:
            place = next((f"{item.source}:{item.line}" for item in raw_items), "the end of the input")
            raise TreeparseError(
                f"A process died before the sentences from {place} on were parsed, perhaps for want of memory: give "
                "fewer --jobs, a smaller --chunk, or --max-words. In a folder, --skip-existing keeps the outputs that "
                "are complete."
            ) from error
        work.observer.advance(parsed.summary.sentences, parsed.summary.words, sum(map(reader.length_of, raw_items)))
        if tally is not None and (search := work.request.trees.search) is not None:
            search.tally.add(tally)
        yield parsed


# ---------------------------------------------------------------- in a worker

_worker: Callable[[], tuple[ChunkParser, FileWriter]]
_stopped: Connection


def _begin(load: Loader, request: CorpusRequest, threads: int, stopped: Connection) -> None:
    """Prepare a worker. Its first chunk loads the model, because an error of this function would have no message."""
    global _worker, _stopped
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, too, which ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    _worker, _stopped = cache(partial(_load, load, request)), stopped


def _end_with_parent() -> None:
    """End this process, whatever it does, when the parent dies."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(0)


def _check_running() -> None:
    """Raise if the parent wants no more results.

    A worker that ended at once instead might leave half a result in the pipe, whose reader would wait for the rest.
    """
    if _stopped.poll():
        raise CancelledError


def _load(load: Loader, request: CorpusRequest) -> tuple[ChunkParser, FileWriter]:
    model = load()
    if request.tags:
        model.check_tags()
    return ChunkParser(model, request), request.writer()


def _parse(items: list[RawOrEnd]) -> WorkerResult:
    _check_running()
    try:
        parser, writer = _worker()
        parsed, rules = parser.parse(items, check=_check_running), parser.request.trees.search
    except DataError:
        raise
    except TreeparseError as error:  # of a class that pickle may not know how to make
        raise TreeparseError(str(error)) from error
    if writer.is_independent:
        parsed = ParsedChunk([*_packed(parsed.results, writer)], parsed.summary, parsed.fault, parsed.doubts)
    return parsed, None if rules is None else rules.tally.taken()


def _packed(results: Iterable[Result], writer: FileWriter) -> Iterator[Any]:
    """Yield the sentences of each output, packed, after their faults; a None ends an output."""
    sentences = list[NBestList]()
    for result in results:
        if isinstance(result, NBestList):
            sentences.append(result)
            continue
        if result is None and sentences:
            yield writer.pack(sentences)
            sentences = []
        yield result
    if sentences:
        yield writer.pack(sentences)
