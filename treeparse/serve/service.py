"""The service without HTTP: parameters in, the body of an answer out; one thread parses for all requests."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from treeparse.corpus.trees import TreeRequest
from treeparse.corpus.writers import TEXT_WRITERS
from treeparse.corpus.writers.writer import WriterOptions
from treeparse.data.parses import NBestList
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.sentence import Sentence
from treeparse.serve.job_queue import Job, JobQueue, Share
from treeparse.serve.limits import Limits, RequestError
from treeparse.serve.metrics import ServerMetrics
from treeparse.serve.process_request import read_request
from treeparse.serve.sentences import read_sentences
from treeparse.version import installed_version

LOG = logging.getLogger(__name__)
SHORT = 1 << 15  # bytes that are read or written in the thread of all connections

TAGS = ("X", "X")  # any tags, for models that read tags
FIRST = Sentence(("a", "b"), TAGS, TAGS, TAGS)
WARM_UP = (
    TreeRequest(probabilities=True),
    TreeRequest("kbest", 2, probabilities=True),
    TreeRequest("sample", 2, probabilities=True),
)

T = TypeVar("T")


def as_json(value: object) -> bytes:
    """Return a value as JSON in UTF-8, with a line end."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


class Service:
    """Models by name, the default one first, the thread in which they parse, and counts of requests."""

    models: dict[str, Parser | Ensemble]
    limits: Limits

    def __init__(self, models: Mapping[str, Parser | Ensemble], limits: Limits | None = None) -> None:
        if not models:
            raise TreeparseError("A server needs one or more models, got none.")
        self.models, self.limits = dict(models), limits or Limits()
        self.metrics: ServerMetrics = ServerMetrics(self.models)
        self.queue: JobQueue = JobQueue(self.limits.waiting)
        self._parser = threading.Thread(target=self._parse_jobs, name="parser", daemon=True)
        self._long = ThreadPoolExecutor(1, "long requests")
        self._acknowledgements = [f"treeparse {installed_version()}"]

    def start(self) -> None:
        """Parse a sentence with every model, so that no client waits for compiled kernels; then start the thread."""
        for model in self.models.values():
            for trees in WARM_UP:
                trees.find(model, [FIRST], [0])
        self._parser.start()

    def stop(self) -> None:
        """Parse the requests that wait, and end."""
        self.queue.close()
        self._parser.join()
        self._long.shutdown()

    def is_well(self) -> bool:
        """Return whether requests are parsed."""
        return self._parser.is_alive()

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
        job = Job(request, await self._run(len(data), lambda: read_sentences(data, request, model, self.limits)))
        self.queue.put(job)
        try:
            async with asyncio.timeout(self.limits.seconds):
                await asyncio.wrap_future(job.done)
        except TimeoutError as error:
            seconds = f"{self.limits.seconds:g} seconds"
            raise RequestError(503, f"The request was not parsed within {seconds}: retry later.") from error
        return await self._run(len(data) * request.trees.k, lambda: self._answer(job))

    async def _run(self, size: int, function: Callable[[], T]) -> T:
        """Call a function, in a thread if ``size`` is many bytes, so that other requests need not wait for it."""
        if size <= SHORT:
            return function()
        return await asyncio.get_running_loop().run_in_executor(self._long, function)

    def _answer(self, job: Job) -> bytes:
        """Return the body of an answer: the model's name, the software and the text of the trees, as UDPipe does."""
        request, trees = job.request, job.request.trees
        has_lists = trees.method != "parse"
        options = WriterOptions(lists=has_lists, tags=request.tags and not has_lists, probabilities=trees.probabilities)
        lists = (NBestList(sentence, tuple(own)) for sentence, own in zip(job.sentences, job.lists, strict=True))
        text = "".join(TEXT_WRITERS[request.output](options).texts(lists))
        return as_json({"model": request.model, "acknowledgements": self._acknowledgements, "result": text})

    def _parse_jobs(self) -> None:
        """Parse the jobs of the queue, until it is closed and empty."""
        while shares := self.queue.take():
            for job in self._parse(shares):
                self.queue.put_back(job)

    def _parse(self, shares: Sequence[Share]) -> list[Job]:
        """Parse the shares, whose requests are equal, and return the jobs that have sentences left."""
        request = shares[0].job.request
        parsed = [(share.job, index) for share in shares for index in range(len(share.job.lists), share.stop)]
        words = [replace(job.sentences[index].words, heads=None, labels=None, allowed=None) for job, index in parsed]
        started = time.perf_counter()
        try:
            lists = iter(request.trees.find(self.models[request.model], words, [index for _, index in parsed]))
        except Exception as error:
            if len(shares) > 1:  # only the faulty request is to fail
                return [job for share in shares for job in self._parse([share])]
            LOG.exception("A request could not be parsed.")
            shares[0].job.fail(error)
            return []
        self.metrics.parsed(request.model, len(words), sum(map(len, words)), time.perf_counter() - started)
        return [share.job for share in shares if share.job.add([*islice(lists, share.stop - len(share.job.lists))])]
