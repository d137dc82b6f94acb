"""The thread that parses the jobs of the queue."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from treeparse.model import Ensemble, Parser
from treeparse.serve.job_queue import Job, JobQueue, Share
from treeparse.serve.metrics import ServerMetrics
from treeparse.serve.sentences import words_alone

LOG = logging.getLogger(__name__)


class Worker:
    """Parses jobs in one thread, until the queue is closed and empty."""

    def __init__(self, models: Mapping[str, Parser | Ensemble], queue: JobQueue, metrics: ServerMetrics) -> None:
        self._models, self._queue, self._metrics = models, queue, metrics
        self._thread = threading.Thread(target=self._work, name="parser", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def is_alive(self) -> bool:
        """Return whether the thread has started and not ended."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join()

    def _work(self) -> None:
        while shares := self._queue.take():
            for job in self._parse(shares):
                self._queue.put_back(job)

    def _parse(self, shares: Sequence[Share]) -> list[Job]:
        """Parse the shares, whose requests are equal, and return the jobs that have sentences left."""
        request = shares[0].job.request
        parts = [share.job.sentences[len(share.job.lists) : share.stop] for share in shares]
        words = [words_alone(sentence) for sentences in parts for sentence in sentences]
        ordinals = [ordinal for share in shares for ordinal in range(len(share.job.lists), share.stop)]
        started = time.perf_counter()
        try:
            lists = request.trees.find(self._models[request.model], words, ordinals)
        except Exception as error:
            if len(shares) > 1:  # only the faulty request is to fail
                return [job for share in shares for job in self._parse([share])]
            LOG.exception("A request could not be parsed.")
            shares[0].job.fail(error)
            return []
        self._metrics.parsed(request.model, len(words), sum(map(len, words)), time.perf_counter() - started)
        left = iter(lists)
        return [
            share.job
            for share, sentences in zip(shares, parts, strict=True)
            if share.job.add([next(left) for _ in sentences])
        ]
