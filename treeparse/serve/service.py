"""Requests through the parser and back, whatever protocol they come by."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.sentence import Sentence
from treeparse.serve.answers import answer
from treeparse.serve.asked import Asked, asked_of
from treeparse.serve.limits import Limits, RequestError
from treeparse.serve.sentences import read_sentences
from treeparse.serve.tally import Tally
from treeparse.serve.waiting import Job, Waiting
from treeparse.serve.worker import Worker, trees_of

AT_ONCE = 1 << 15  # bytes that are read or written without leaving the thread of all connections

TAGS = ("X", "X")  # any, for models that read some
FIRST = Sentence(("a", "b"), TAGS, TAGS, TAGS)
PROBABILITIES = Asked("", "conllu", "conllu", "parse", 1, 0, probabilities=True, tags=False)
BEST, SAMPLES = (replace(PROBABILITIES, trees=trees, k=2) for trees in ("kbest", "sample"))

T = TypeVar("T")


class Service:
    """Models by their names, the first one the default, the thread in which they parse, and counts of what was done."""

    def __init__(self, models: Mapping[str, Parser | Ensemble], limits: Limits | None = None) -> None:
        if not models:
            raise TreeparseError("There is no model to serve: name one.")
        self.models, self.limits = dict(models), limits or Limits()
        self.tally = Tally(self.models)
        self.waiting = Waiting(self.limits.waiting)
        self._worker = Worker(self.models, self.waiting, self.tally)
        self._long = ThreadPoolExecutor(1, "long requests")

    def start(self) -> None:
        """Begin to parse what is asked for; first a sentence with every model, so that no client waits for kernels."""
        for model in self.models.values():
            for asked in (PROBABILITIES, BEST, SAMPLES):
                trees_of(model, asked, [FIRST], [0])
        self._worker.start()

    def stop(self) -> None:
        """Parse what waits, and end."""
        self.waiting.close()
        self._worker.join()
        self._long.shutdown()

    def is_well(self) -> bool:
        """Whether requests are parsed."""
        return self._worker.is_alive()

    def gauges(self) -> dict[str, tuple[str, float]]:
        """What waits now."""
        jobs = self.waiting.now()
        return {
            "treeparse_queue_requests": ("Requests that wait for the parser.", len(jobs)),
            "treeparse_queue_words": ("Words of these that are not parsed yet.", sum(job.left for job in jobs)),
        }

    async def process(self, given: Mapping[str, bytes]) -> bytes:
        """The answer to a request, from its parameters.

        When it is cancelled the request is not parsed any more.

        Raises:
            RequestError: as `asked_of` and `read_sentences` do, and where the parser has no time for it.
        """
        asked = asked_of(given, self.models, self.limits)
        data = given["data"]
        model = self.models[asked.model]
        sentences = await self._run(len(data), lambda: read_sentences(data, asked, model, self.limits))
        job = Job(asked, sentences)
        self.waiting.put(job)
        try:
            async with asyncio.timeout(self.limits.seconds):
                lists = await asyncio.wrap_future(job.done)
        except TimeoutError as error:
            seconds = f"{self.limits.seconds:g} seconds"
            raise RequestError(503, f"The request was not parsed within {seconds}: come again later.") from error
        return await self._run(len(data) * asked.k, lambda: answer(asked, sentences, lists))

    async def _run(self, size: int, function: Callable[[], T]) -> T:
        """What a function gives; where it has much to do in a thread, so that others need not wait for it."""
        if size <= AT_ONCE:
            return function()
        return await asyncio.get_running_loop().run_in_executor(self._long, function)
