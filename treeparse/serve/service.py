"""The service without HTTP: parameters in, the body of an answer out; one thread parses for all requests."""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from treeparse.corpus.trees import TreeRequest
from treeparse.corpus.writers import TEXT_WRITERS
from treeparse.corpus.writers.writer import WriterOptions
from treeparse.data.conllu import ConlluSentence
from treeparse.data.parses import NBestList, Parse
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.sentence import Sentence
from treeparse.serve.limits import Limits, RequestError
from treeparse.serve.metrics import ServerMetrics
from treeparse.serve.process_request import ProcessRequest, read_request
from treeparse.serve.sentences import read_sentences
from treeparse.version import installed_version

LOG = logging.getLogger(__name__)
TOGETHER = 10_000  # words of requests that are parsed together; a list counts its words once for each tree

TAGS = ("X", "X")  # any tags, for models that read tags
FIRST = Sentence(("a", "b"), TAGS, TAGS, TAGS)
WARM_UP = (
    TreeRequest(probabilities=True),
    TreeRequest("kbest", 2, probabilities=True),
    TreeRequest("sample", 2, probabilities=True),
)


@dataclass(eq=False)
class Job:
    """A request's sentences, and the future lists of their trees; cancelling them drops a job that waits."""

    request: ProcessRequest
    sentences: Sequence[ConlluSentence]
    lists: "asyncio.Future[list[list[Parse]]]" = field(default_factory=asyncio.Future)

    @property
    def words(self) -> int:
        """Number of words, once for each tree."""
        return sum(len(sentence.words) for sentence in self.sentences) * self.request.trees.k


class Service:
    """Models by name, the default one first, the thread in which they parse, and counts of requests."""

    models: dict[str, Parser | Ensemble]
    limits: Limits

    def __init__(self, models: Mapping[str, Parser | Ensemble], limits: Limits | None = None) -> None:
        if not models:
            raise TreeparseError("A server needs one or more models, got none.")
        self.models, self.limits = dict(models), limits or Limits()
        self.metrics: ServerMetrics = ServerMetrics(self._count_waiting)
        self._waiting: deque[Job] = deque()
        self._is_waiting = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "parser")

    def start(self) -> None:
        """Parse a sentence with every model, so that no client waits for compiled kernels; then parse requests."""
        for model in self.models.values():
            for trees in WARM_UP:
                trees.find(model, [FIRST], [0])
        self._parsing = asyncio.create_task(self._parse_jobs())

    async def stop(self) -> None:
        """End the parsing, and wait for the end of the thread."""
        self._parsing.cancel()
        await asyncio.wait([self._parsing])

    def is_well(self) -> bool:
        """Return whether requests are parsed."""
        return not self._parsing.done()

    async def process(self, parameters: Mapping[str, str]) -> bytes:
        """Return the body of the answer to a request.

        Raises:
            RequestError: as `read_request` and `read_sentences` do, if too many requests wait, and if the request was
                not parsed in time.
        """
        request = read_request(parameters, self.models, self.limits)
        data, model = parameters["data"], self.models[request.model]
        job = Job(request, await asyncio.to_thread(read_sentences, data, request, model, self.limits))
        self.put(job)
        try:
            async with asyncio.timeout(self.limits.seconds):
                await job.lists
        except asyncio.CancelledError:
            self.metrics.clients_left.inc()
            raise
        except TimeoutError as error:
            seconds = f"{self.limits.seconds:g} seconds"
            raise RequestError(503, f"The request was not parsed within {seconds}: retry later.") from error
        return await asyncio.to_thread(_answer, job)

    def put(self, job: Job) -> None:
        """Let a job wait for the parser; raise if too many jobs wait."""
        self._drop_cancelled()
        if len(self._waiting) >= self.limits.waiting:
            raise RequestError(503, f"{self.limits.waiting} requests wait already: retry later.")
        self._waiting.append(job)
        self._is_waiting.set()

    def take(self) -> list[Job]:
        """Return the first job that waits, and others of equal requests, up to `TOGETHER` words; [] if none waits."""
        self._drop_cancelled()
        jobs: list[Job] = []
        words = 0
        for job in self._waiting:
            if job.request == self._waiting[0].request and (not jobs or words + job.words <= TOGETHER):
                jobs.append(job)
                words += job.words
        self._waiting = deque(job for job in self._waiting if job not in jobs)
        if not self._waiting:
            self._is_waiting.clear()
        return jobs

    def _drop_cancelled(self) -> None:
        self._waiting = deque(job for job in self._waiting if not job.lists.cancelled())

    def _count_waiting(self) -> tuple[int, int]:
        jobs = [job for job in self._waiting if not job.lists.cancelled()]
        return len(jobs), sum(job.words for job in jobs)

    async def _parse_jobs(self) -> None:
        """Parse the requests that wait, until cancelled; the thread then ends after the requests in it."""
        try:
            while True:
                await self._is_waiting.wait()
                if jobs := self.take():
                    await self._parse(jobs)
        finally:
            self._thread.shutdown()

    async def _parse(self, jobs: Sequence[Job]) -> None:
        """Parse the sentences of equal requests together."""
        try:
            lists = await asyncio.get_running_loop().run_in_executor(self._thread, self._find, jobs)
        except Exception as error:
            if len(jobs) > 1:  # only the faulty request is to fail
                for job in jobs:
                    await self._parse([job])
            elif not jobs[0].lists.cancelled():
                jobs[0].lists.set_exception(error)
            return
        for job, own in zip(jobs, lists, strict=True):
            if not job.lists.cancelled():
                job.lists.set_result(own)

    def _find(self, jobs: Sequence[Job]) -> list[list[list[Parse]]]:
        """Return the trees of each job's sentences."""
        request, started = jobs[0].request, time.perf_counter()
        words = [replace(s.words, heads=None, labels=None, allowed=None) for job in jobs for s in job.sentences]
        ordinals = [ordinal for job in jobs for ordinal in range(len(job.sentences))]
        lists = iter(request.trees.find(self.models[request.model], words, ordinals))
        self.metrics.sentences.labels(request.model).inc(len(words))
        self.metrics.words.labels(request.model).inc(sum(map(len, words)))
        self.metrics.parsing_seconds.labels(request.model).inc(time.perf_counter() - started)
        return [[next(lists) for _ in job.sentences] for job in jobs]


def _answer(job: Job) -> bytes:
    """Return the body of an answer: the model's name, the software and the text of the trees, as UDPipe does."""
    request, trees = job.request, job.request.trees
    has_lists = trees.method != "parse"
    options = WriterOptions(lists=has_lists, tags=request.tags and not has_lists, probabilities=trees.probabilities)
    lists = (NBestList(s, tuple(own)) for s, own in zip(job.sentences, job.lists.result(), strict=True))
    text = "".join(TEXT_WRITERS[request.output](options).texts(lists))
    software = [f"treeparse {installed_version()}"]
    return as_json({"model": request.model, "acknowledgements": software, "result": text})


def as_json(value: object) -> bytes:
    """Return a value as JSON in UTF-8, with a line end."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"
