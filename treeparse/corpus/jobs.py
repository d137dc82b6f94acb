"""A corpus parsed by several processes: the parent cuts it into chunks and writes, the workers read and parse.

Chunks are the same as those of one process, and so are the outputs. A worker that ends, as when the system kills it for
its memory, is replaced, and its chunks are parsed by another one.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from multiprocessing import connection
from typing import Any, NamedTuple

from treeparse.corpus.forks import worker_context
from treeparse.corpus.parsing import CorpusWork, ParsedChunk, Result
from treeparse.corpus.progress import CorpusObserver, CorpusSummary
from treeparse.corpus.request import CorpusPart, CorpusRequest
from treeparse.corpus.sentences import RawItem, RawItemOrEnd
from treeparse.corpus.worker import Loader, OutputPiece, SentChunk, serve_chunks
from treeparse.errors import TreeparseError

WAITING = 2  # chunks that a worker has: the one that it parses, and the next one
READ_AHEAD = 6  # chunks a worker that are read and not yet written, at most: a slow one holds up those after it
MOST_DEATHS = 3  # of workers, by the same chunk


def parse_with_jobs(
    load: Loader,
    request: CorpusRequest,
    parts: Sequence[CorpusPart],
    jobs: int,
    *,
    threads: int = 1,
    observer: CorpusObserver | None = None,
) -> CorpusSummary:
    """Parse parts of a request in several processes; the outputs are those of `treeparse.corpus.parse_parts`.

    Args:
        load: returns the model in each process; it must pickle. Weights that come from a folder are shared.
        request: the request; it must pickle, so its tokenizer must be a name.
        parts: of the request.
        jobs: number of processes that parse.
        threads: number of torch's threads of each.
        observer: receives reports, of chunks.

    Raises:
        TreeparseError: as `treeparse.corpus.parse_corpus`; or the processes die again and again.
        OSError: a file cannot be read or written.
    """
    writer = request.writer()
    work = CorpusWork(request, parts, observer)
    with closing(Workers(load, request, jobs, threads)) as workers:
        parsed = _counted(workers.results(work.chunks()), work)
        pieces = chain.from_iterable(work.reported(parsed))
        if writer.is_independent:
            return work.write(_packed_of(pieces), writer.write_packed)
        return work.write(_results_of(pieces), writer.write)


def _counted(results: Iterator[tuple["Task", SentChunk]], work: CorpusWork) -> Iterator[ParsedChunk[OutputPiece]]:
    """Yield the parsed chunks; report their progress and the outcomes of the search by rules."""
    for task, (parsed, tally) in results:
        length = sum(item.length for item in task.items if isinstance(item, RawItem))
        work.observer.advance(parsed.summary.sentences, parsed.summary.words, length)
        if tally is not None and work.request.trees.rules is not None:
            work.request.trees.rules.tally.add(tally)
        yield parsed


def _packed_of(pieces: Iterator[OutputPiece]) -> Iterator[Any]:
    for piece in pieces:
        yield from piece.faults
        if piece.packed is not None:
            yield piece.packed
        if piece.ends:
            yield None


def _results_of(pieces: Iterator[OutputPiece]) -> Iterator[Result]:
    for piece in pieces:
        yield from piece.faults
        yield from piece.results
        if piece.ends:
            yield None


class Task(NamedTuple):
    """A chunk, its number, from 0, and how many workers have died of it."""

    number: int
    items: list[RawItemOrEnd]
    deaths: int = 0


class Workers:
    """Processes that parse chunks, and are replaced where they die; `close` ends them."""

    def __init__(self, load: Loader, request: CorpusRequest, jobs: int, threads: int) -> None:
        self._context = worker_context()
        self._arguments = load, request, threads
        self._workers = [self._start() for _ in range(jobs)]
        self._limit = READ_AHEAD * jobs

    def _start(self) -> "_Worker":
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=serve_chunks, args=(theirs, *self._arguments), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours, deque())

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()

    def results(self, chunks: Iterator[list[RawItemOrEnd]]) -> Iterator[tuple[Task, SentChunk]]:
        """Yield chunks with their results, in order; an error of the chunks is raised after those before it."""
        tasks, done, next_number = _Tasks(chunks), dict[int, tuple[Task, SentChunk]](), 0
        while True:
            while next_number in done:  # first, because it makes room to read on
                yield done.pop(next_number)
                next_number += 1
            for _ in range(WAITING):
                for worker in sorted(self._workers, key=lambda each: len(each.tasks)):
                    if len(worker.tasks) < WAITING:
                        tasks.give(worker, may_read=tasks.taken - next_number < self._limit)
            if not any(worker.tasks for worker in self._workers) and not tasks.returned:
                if tasks.error is not None:
                    raise tasks.error
                if tasks.at_end:
                    return
            for worker in self._ready():
                result = worker.received()
                if result is None:
                    self._replace(worker, tasks)
                else:
                    task = worker.tasks.popleft()
                    done[task.number] = task, result

    def _ready(self) -> list["_Worker"]:
        """Wait until some workers have a result or have died; return these."""
        handles = {each: worker for worker in self._workers for each in (worker.connection, worker.process.sentinel)}
        return list(dict.fromkeys(handles[each] for each in connection.wait(handles)))

    def _replace(self, dead: "_Worker", tasks: "_Tasks") -> None:
        """Start another worker in the place of a dead one; other workers take its tasks."""
        dead.process.join()
        dead.connection.close()
        if dead.tasks:
            first = dead.tasks.popleft()
            first = first._replace(deaths=first.deaths + 1)
            if first.deaths == MOST_DEATHS:
                raws = (item.raw for item in first.items if isinstance(item, RawItem))
                place = next((f"{raw.source}:{raw.line}" for raw in raws), "an empty chunk")
                raise TreeparseError(
                    f"{MOST_DEATHS} processes ended (exit code {dead.process.exitcode}) while they parsed the "
                    f"sentences from {place} on, perhaps for want of memory: give fewer --jobs, a smaller --chunk, or "
                    "--max-words."
                )
            tasks.returned.extendleft(reversed([first, *dead.tasks]))
        self._workers[self._workers.index(dead)] = self._start()


class _Tasks:
    """Chunks with their numbers: first those that dead workers leave, then further ones."""

    def __init__(self, chunks: Iterator[list[RawItemOrEnd]]) -> None:
        self._chunks, self.taken, self.at_end = chunks, 0, False
        self.returned = deque[Task]()
        self.error: TreeparseError | OSError | None = None

    def give(self, worker: "_Worker", *, may_read: bool) -> None:
        """Give the next task to a worker, if there is one; only if it ``may_read``, one of the further chunks."""
        if self.returned:
            worker.give(self.returned.popleft())
        elif may_read and not self.at_end:
            try:
                items = next(self._chunks, None)
            except (TreeparseError, OSError) as error:
                self.error, items = error, None
            if items is None:
                self.at_end = True
            else:
                worker.give(Task(self.taken, items))
                self.taken += 1


class _Worker:
    """A process, the connection to it, and its tasks."""

    def __init__(self, process: Any, connection: Any, tasks: deque[Task]) -> None:
        self.process, self.connection, self.tasks = process, connection, tasks

    def give(self, task: Task) -> None:
        self.tasks.append(task)
        with suppress(OSError):  # it has died, which is noticed where results are received
            self.connection.send(task.items)

    def received(self) -> SentChunk | None:
        """Return the next result of a worker that has one or has died; None if it has died."""
        try:
            result = self.connection.recv() if self.connection.poll() else None
        except (EOFError, OSError):
            return None
        if isinstance(result, BaseException):
            raise result
        return result
