"""The service without HTTP: parameters in, the body of an answer out; one thread parses for all requests."""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain, groupby
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from treeparse.corpus.sentences import check_sentence
from treeparse.corpus.writers import TEXT_WRITERS, WriterOptions
from treeparse.data.conllu import NO_SENTENCE, ConlluSentence, scan_conllu
from treeparse.data.files import InMemory
from treeparse.data.parses import NBestList, Parse
from treeparse.data.raw_text import Tokenizer, tokenised
from treeparse.data.validation import TreeCheck
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Ensemble, Parser, TreeRequest
from treeparse.model.inference.tree_request import UnfitSentenceError
from treeparse.sentence import Sentence
from treeparse.serve.process_request import JSON, PRESEGMENTED, Limits, ProcessRequest, RequestError, read_request
from treeparse.shipped import installed_version

SOURCE = "data"  # the name of the parameter, for messages
SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # upper bounds of the histogram's buckets
LOG = logging.getLogger(__name__)
TOGETHER = 10_000  # words of requests that are parsed together; a list counts its words once for each tree
TAGS = ("X", "X")  # any tags, for models that read tags
FIRST = Sentence(("a", "b"), TAGS, TAGS, TAGS)
WARM_UP = (
    TreeRequest(probabilities=True),
    TreeRequest("kbest", 2, probabilities=True),
    TreeRequest("sample", 2, probabilities=True),
)


def read_sentences(
    data: str, request: ProcessRequest, model: Parser | Ensemble, limits: Limits, tokenizer: Tokenizer | None = None
) -> list[ConlluSentence]:
    """Read the sentences of a request's data; raw text needs the tokenizer.

    Raises:
        RequestError: there are too many words, a sentence is faulty or lacks tags that the model reads; the message
            names the line.
    """
    k, total = request.trees.k, 0

    def count(words: int, line: int) -> None:
        """Count the words of a sentence, once for each tree; raise if there are too many."""
        nonlocal total
        if words > limits.sentence_words:
            rule = f"a sentence must have at most {limits.sentence_words:,} words"
            raise RequestError(413, f"{SOURCE}:{line}: {rule}, got {words:,}: split it.")
        total += words * k
        if total > limits.request_words:
            trees = f", {k} trees of each sentence counted" if k > 1 else ""
            most = f"{limits.request_words:,} words{trees}"
            raise RequestError(413, f"{SOURCE}:{line}: the request has more than {most}: send several.")

    try:
        if request.tokenizing is not None and tokenizer is not None:
            sentences = list(_tokenised(data, _joining(tokenizer, request.tokenizing), count))
        else:
            trees, single_root = request.trees, model.networks[0].config.single_root
            known = TreeCheck(single_root, partial=True, heads=trees.keep_heads)
            check = known if trees.keep_heads or trees.within else None
            sentences = list(_sentences(data, request.input, check, count))
        if not sentences:
            raise DataError(NO_SENTENCE, source=SOURCE)
        for sentence in sentences:
            check_sentence(sentence, model)
    except DataError as error:
        raise RequestError(400, str(error)) from error
    return sentences


def _sentences(
    data: str, form: str, check: TreeCheck | None, count: Callable[[int, int], None]
) -> Iterator[ConlluSentence]:
    """Yield the sentences; call ``count`` with the number of words and the line of each before it is yielded.

    ``check`` has the rules for the heads of CoNLL-U, None if they are not read.
    """
    if form == "conllu":
        for sentence in scan_conllu(InMemory(SOURCE, data.encode()), check):
            if not isinstance(sentence, ConlluSentence):
                raise sentence[0]
            count(len(sentence.words), sentence.line)
            yield sentence
        return
    read = horizontal if form == "horizontal" else vertical
    for ordinal, (line, forms) in enumerate(read(_lines(data))):
        count(len(forms), line)
        yield ConlluSentence.from_forms(forms, sent_id=str(ordinal + 1), source=SOURCE, line=line, ordinal=ordinal)


def _tokenised(data: str, tokenizer: Tokenizer, count: Callable[[int, int], None]) -> Iterator[ConlluSentence]:
    """Yield the sentences of the lines of raw text."""
    for ordinal, (line, words) in enumerate(horizontal(_lines(data))):
        count(len(words), line)  # before the tokenizer works on them; sentences have no fewer
        paragraph = ConlluSentence.from_forms(
            words, sent_id=str(ordinal + 1), source=SOURCE, line=line, ordinal=ordinal
        )
        yield from tokenised(paragraph, tokenizer)


def _joining(tokenizer: Tokenizer, options: Sequence[str]) -> Tokenizer:
    """Return the tokenizer; presegmented text has one sentence a line."""
    return (lambda text: [[*chain.from_iterable(tokenizer(text))]]) if PRESEGMENTED in options else tokenizer


def horizontal(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of each line, separated by spaces and tabs; a no-break space is a space within a word."""
    for number, line in lines:
        forms = line.replace("\t", " ").split(" ")
        if words := [form.replace("\N{NO-BREAK SPACE}", " ") for form in forms if form]:
            yield number, words


def vertical(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of sentences, one a line up to a tab; empty lines separate sentences."""
    words = ((number, line.lstrip("\t").partition("\t")[0]) for number, line in lines)
    for is_sentence, group in groupby(words, key=lambda numbered: numbered[1] != ""):
        if is_sentence:
            numbers, forms = zip(*group, strict=True)
            yield numbers[0], list(forms)


def _lines(data: str) -> Iterator[tuple[int, str]]:
    """Yield the lines, counted from 1, without their ends and the byte order mark."""
    for number, line in enumerate(data.removeprefix("\ufeff").split("\n"), 1):
        yield number, line.removesuffix("\r")


class ServerMetrics:
    """Counts of requests, of parsed sentences and of the requests that wait.

    Args:
        waiting: returns the number of requests that wait for the parser, and the number of their words.
    """

    def __init__(self, waiting: Callable[[], tuple[int, int]]) -> None:
        self.registry: CollectorRegistry = CollectorRegistry()
        own: dict[str, Any] = {"namespace": "treeparse", "registry": self.registry}
        self.requests: Counter = Counter("requests", "Requests answered.", ["path", "status"], **own)
        self.seconds: Histogram = Histogram(
            "request_seconds", "Seconds of a request to /process.", buckets=SECONDS, **own
        )
        self.clients_left: Counter = Counter("clients_left", "Clients that left unanswered.", **own)
        self.sentences: Counter = Counter("sentences", "Sentences parsed.", ["model"], **own)
        self.words: Counter = Counter("words", "Words parsed.", ["model"], **own)
        self.parsing_seconds: Counter = Counter("parsing_seconds", "Seconds of parsing.", ["model"], **own)
        queue = Gauge("queue_requests", "Requests that wait for the parser.", **own)
        queue.set_function(lambda: waiting()[0])
        queue_words = Gauge("queue_words", "Words of the requests that wait for the parser.", **own)
        queue_words.set_function(lambda: waiting()[1])


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

    def __init__(
        self,
        models: Mapping[str, Parser | Ensemble],
        limits: Limits | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        if not models:
            raise TreeparseError("A server needs one or more models, got none.")
        self.models, self.limits, self.tokenizer = dict(models), limits or Limits(), tokenizer
        self._tokenizing = Lock()  # tokenizers need not be safe in several threads
        self.metrics: ServerMetrics = ServerMetrics(self._count_waiting)
        self._waiting: deque[Job] = deque()
        self._is_waiting = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "parser")

    def start(self) -> None:
        """Parse a sentence with every model, so that no client waits for compiled kernels; then parse requests."""
        for model in self.models.values():
            for trees in WARM_UP:
                model.find_trees([FIRST], trees)
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
        request = read_request(parameters, self.models, self.limits, has_tokenizer=self.tokenizer is not None)
        job = Job(request, await asyncio.to_thread(self._read, parameters["data"], request))
        self.put(job)
        try:
            async with asyncio.timeout(self.limits.seconds):
                await job.lists
        except UnfitSentenceError as error:
            line = job.sentences[error.index].line
            raise RequestError(400, f"{SOURCE}:{line}: {error.problem}.") from error
        except asyncio.CancelledError:
            self.metrics.clients_left.inc()
            raise
        except TimeoutError as error:
            seconds = f"{self.limits.seconds:g} seconds"
            raise RequestError(503, f"The request was not parsed within {seconds}: retry later.") from error
        return await asyncio.to_thread(_answer, job)

    def _read(self, data: str, request: ProcessRequest) -> list[ConlluSentence]:
        with self._tokenizing if request.tokenizing is not None else nullcontext():
            return read_sentences(data, request, self.models[request.model], self.limits, self.tokenizer)

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
        self._drop_cancelled()
        return len(self._waiting), sum(job.words for job in self._waiting)

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
        for job, job_lists in zip(jobs, lists, strict=True):
            if not job.lists.cancelled():
                job.lists.set_result(job_lists)

    def _find(self, jobs: Sequence[Job]) -> list[list[list[Parse]]]:
        """Return the trees of each job's sentences."""
        request, started = jobs[0].request, time.perf_counter()
        words = [sentence.words for job in jobs for sentence in job.sentences]
        ordinals = [ordinal for job in jobs for ordinal in range(len(job.sentences))]
        lists = iter(self.models[request.model].find_trees(words, request.trees, ordinals))
        self.metrics.sentences.labels(request.model).inc(len(words))
        self.metrics.words.labels(request.model).inc(sum(map(len, words)))
        self.metrics.parsing_seconds.labels(request.model).inc(time.perf_counter() - started)
        return [[next(lists) for _ in job.sentences] for job in jobs]


def _answer(job: Job) -> bytes:
    """Return the body of an answer: the model's name, the software and the text of the trees, as UDPipe does."""
    request = job.request
    pairs = zip(job.sentences, job.lists.result(), strict=True)
    if request.output == JSON:
        result: Any = [_as_mapping(sentence, parse, request) for sentence, [parse] in pairs]
    else:
        options = WriterOptions.of(request.trees, tags=request.tags)
        result = "".join(TEXT_WRITERS[request.output](options).texts(NBestList(s, tuple(found)) for s, found in pairs))
    software = [f"treeparse {installed_version()}"]
    return as_json({"model": request.model, "acknowledgements": software, "result": result})


def _as_mapping(sentence: ConlluSentence, parse: Parse, request: ProcessRequest) -> dict[str, Any]:
    """Return a parse as JSON, with the probability of each head of each word, from the root on."""
    names = ("tokens", "heads", "labels", "log_prob", "score", "arc_probs", "label_probs", "entropy", "arc_marginals")
    tags = parse.tags if request.tags else {}
    return {"sent_id": sentence.sent_id, **{name: getattr(parse, name) for name in names}, **tags}


def as_json(value: object) -> bytes:
    """Return a value as JSON in UTF-8, with a line end."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"
