"""The queue of requests that wait for the parser, which takes some sentences of each in turn."""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from treeparse.data.conllu import ConlluSentence
from treeparse.data.parses import Parse
from treeparse.serve.limits import RequestError
from treeparse.serve.process_request import ProcessRequest

ROUND_WORDS = 10_000  # of a turn, after which other requests are parsed; a list counts its words once for each tree


@dataclass(eq=False)
class Job:
    """A request's sentences, and the trees of the sentences parsed so far; cancelling ``done`` ends the work."""

    request: ProcessRequest
    sentences: Sequence[ConlluSentence]
    lists: list[list[Parse]] = field(default_factory=list)
    done: "Future[list[list[Parse]]]" = field(default_factory=Future)

    @property
    def words_left(self) -> int:
        """Number of words that are not parsed yet."""
        return sum(len(sentence.words) for sentence in self.sentences[len(self.lists) :])

    def add(self, lists: Sequence[list[Parse]]) -> bool:
        """Add the trees of the next sentences; return whether there are sentences left."""
        self.lists += lists
        if len(self.lists) < len(self.sentences):
            return True
        if self.done.set_running_or_notify_cancel():
            self.done.set_result(self.lists)
        return False

    def fail(self, error: BaseException) -> None:
        """Raise an error where the trees are awaited."""
        if self.done.set_running_or_notify_cancel():
            self.done.set_exception(error)


class Share(NamedTuple):
    """The next sentences of a job, up to ``stop``."""

    job: Job
    stop: int


class JobQueue:
    """Jobs in order, at most ``size``; the parser takes some sentences of each in turn, so that none waits long.

    One thread takes; any thread may put.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def jobs(self) -> list[Job]:
        """Return the jobs that wait, without cancelled jobs."""
        with self._changed:
            self._drop_cancelled()
            return list(self._jobs)

    def put(self, job: Job) -> None:
        """Add a job; raise if the queue is full or closed."""
        with self._changed:
            if self._closed:
                raise RequestError(503, "The server is shutting down: retry later.")
            self._drop_cancelled()
            if len(self._jobs) >= self._size:
                raise RequestError(503, f"{self._size} requests wait already: retry later.")
            self._jobs.append(job)
            self._changed.notify()

    def put_back(self, job: Job) -> None:
        """Add a job with sentences left, after all others; also to a full or closed queue."""
        with self._changed:
            self._jobs.append(job)

    def take(self) -> list[Share]:
        """Wait for jobs, and take from the jobs of the first job's request; return [] once closed and empty."""
        with self._changed:
            while True:
                self._drop_cancelled()
                if self._jobs or self._closed:
                    return self._round()
                self._changed.wait()

    def close(self) -> None:
        """Take no more jobs."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _drop_cancelled(self) -> None:
        self._jobs = deque(job for job in self._jobs if not job.done.cancelled())

    def _round(self) -> list[Share]:
        shares: list[Share] = []
        words = ROUND_WORDS
        for job in self._jobs:
            if words <= 0:
                break
            if job.request == self._jobs[0].request:
                stop = len(job.lists)
                while stop < len(job.sentences) and words > 0:
                    words -= len(job.sentences[stop].words) * job.request.trees.k
                    stop += 1
                shares.append(Share(job, stop))
        taken = {share.job for share in shares}
        self._jobs = deque(job for job in self._jobs if job not in taken)
        return shares
