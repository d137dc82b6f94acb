"""The service without HTTP: parameters in, the body of an answer out."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from treeparse.corpus.trees import TreeRequest
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.sentence import Sentence
from treeparse.serve.answers import answer
from treeparse.serve.job_queue import Job, JobQueue
from treeparse.serve.limits import Limits, RequestError
from treeparse.serve.metrics import ServerMetrics
from treeparse.serve.process_request import read_request
from treeparse.serve.sentences import read_sentences
from treeparse.serve.worker import Worker

SHORT = 1 << 15  # bytes that are read or written in the thread of all connections

TAGS = ("X", "X")  # any, for models that read some
FIRST = Sentence(("a", "b"), TAGS, TAGS, TAGS)
WARM_UP = (
    TreeRequest(probabilities=True),
    TreeRequest("kbest", 2, probabilities=True),
    TreeRequest("sample", 2, probabilities=True),
)

T = TypeVar("T")


class Service:
    """Models by name, the default one first, the thread in which they parse, and counts of requests."""

    def __init__(self, models: Mapping[str, Parser | Ensemble], limits: Limits | None = None) -> None:
        if not models:
            raise TreeparseError("There is no model to serve: name one.")
        self.models, self.limits = dict(models), limits or Limits()
        self.metrics = ServerMetrics(self.models)
        self.queue = JobQueue(self.limits.waiting)
        self._worker = Worker(self.models, self.queue, self.metrics)
        self._long = ThreadPoolExecutor(1, "long requests")

    def start(self) -> None:
        """Parse a sentence with every model, so that no client waits for compiled kernels; then start the thread."""
        for model in self.models.values():
            for trees in WARM_UP:
                trees.find(model, [FIRST], [0])
        self._worker.start()

    def stop(self) -> None:
        """Parse the requests that wait, and end."""
        self.queue.close()
        self._worker.join()
        self._long.shutdown()

    def is_well(self) -> bool:
        """Return whether requests are parsed."""
        return self._worker.is_alive()

    def gauges(self) -> dict[str, tuple[str, float]]:
        """Return the size of the queue: values by name, each with its meaning."""
        jobs = self.queue.jobs()
        words = sum(job.words_left for job in jobs)
        return {
            "treeparse_queue_requests": ("Requests that wait for the parser.", len(jobs)),
            "treeparse_queue_words": ("Words of these requests that are not parsed yet.", words),
        }

    async def process(self, parameters: Mapping[str, bytes]) -> bytes:
        """Return the body of the answer to a request; cancelling it ends the parsing of its sentences.

        Raises:
            RequestError: as `read_request` and `read_sentences` do, and if the request was not parsed in time.
        """
        request = read_request(parameters, self.models, self.limits)
        data = parameters["data"]
        model = self.models[request.model]
        sentences = await self._run(len(data), lambda: read_sentences(data, request, model, self.limits))
        job = Job(request, sentences)
        self.queue.put(job)
        try:
            async with asyncio.timeout(self.limits.seconds):
                lists = await asyncio.wrap_future(job.done)
        except TimeoutError as error:
            seconds = f"{self.limits.seconds:g} seconds"
            raise RequestError(503, f"The request was not parsed within {seconds}: retry later.") from error
        return await self._run(len(data) * request.trees.k, lambda: answer(request, sentences, lists))

    async def _run(self, size: int, function: Callable[[], T]) -> T:
        """Call a function, in a thread if it has much to do, so that other requests need not wait for it."""
        if size <= SHORT:
            return function()
        return await asyncio.get_running_loop().run_in_executor(self._long, function)
