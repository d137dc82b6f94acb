"""Requests that wait for the parser, and the rounds in which it takes them."""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from treeparse.data.conllu import ConlluSentence
from treeparse.data.parses import Parse
from treeparse.serve.asked import Asked
from treeparse.serve.limits import RequestError

ROUND_WORDS = 10_000  # parsed before the next requests have their turn; of lists, the words of all their trees


@dataclass(eq=False)
class Job:
    """A request's sentences, and the trees of the first of them, in order; whoever cancels ``done`` wants no more."""

    asked: Asked
    sentences: Sequence[ConlluSentence]
    lists: list[list[Parse]] = field(default_factory=list)
    done: "Future[list[list[Parse]]]" = field(default_factory=Future)

    @property
    def left(self) -> int:
        """Words that are not parsed yet."""
        return sum(len(sentence.words) for sentence in self.sentences[len(self.lists) :])

    def add(self, lists: Sequence[list[Parse]]) -> bool:
        """Add the trees of the next sentences; whether there are sentences left."""
        self.lists += lists
        if len(self.lists) < len(self.sentences):
            return True
        if self.done.set_running_or_notify_cancel():
            self.done.set_result(self.lists)
        return False

    def fail(self, error: BaseException) -> None:
        """Let the one who waits have the error."""
        if self.done.set_running_or_notify_cancel():
            self.done.set_exception(error)


class Share(NamedTuple):
    """The next sentences of a job, up to ``stop``."""

    job: Job
    stop: int


class Waiting:
    """Jobs in their order, at most so many; the parser takes some of each in turn, so that none waits for a long one.

    One thread takes; any may put.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def now(self) -> list[Job]:
        """The jobs that wait, but for those that nobody wants any more."""
        with self._changed:
            self._drop_cancelled()
            return list(self._jobs)

    def put(self, job: Job) -> None:
        """Add a job; raises where there are too many, and once it is closed."""
        with self._changed:
            if len(self._jobs) >= self._most:
                self._drop_cancelled()
            if self._closed:
                raise RequestError(503, "The server stops.")
            if len(self._jobs) >= self._most:
                raise RequestError(503, f"{self._most} requests wait already: come again later.")
            self._jobs.append(job)
            self._changed.notify()

    def put_back(self, job: Job) -> None:
        """Add the rest of a job, behind all others."""
        with self._changed:
            self._jobs.append(job)

    def take(self) -> list[Share]:
        """Wait for jobs, and take from those that ask the same as the first; nothing once it is closed and empty."""
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
        room = ROUND_WORDS
        for job in self._jobs:
            if room <= 0:
                break
            if job.asked == self._jobs[0].asked:
                stop = len(job.lists)
                while stop < len(job.sentences) and room > 0:
                    room -= len(job.sentences[stop].words) * job.asked.k
                    stop += 1
                shares.append(Share(job, stop))
        taken = {id(share.job) for share in shares}
        self._jobs = deque(job for job in self._jobs if id(job) not in taken)
        return shares
