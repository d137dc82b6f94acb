"""Which requests the parser takes, and in which order; what /metrics and /health say, read as Prometheus reads it."""

import asyncio
from collections.abc import Callable
from functools import wraps

import pytest
from helpers.served import HeldModel, Server, served
from prometheus_client.parser import text_string_to_metric_families

from treeparse.data.conllu import ConlluSentence
from treeparse.model import Parser
from treeparse.model.inference.tree_request import TreeRequest
from treeparse.serve import Limits
from treeparse.serve.process_request import ProcessRequest, RequestError
from treeparse.serve.service import TOGETHER, Job, Service

PARSE = ProcessRequest("m", "conllu", "conllu", TreeRequest(), tags=False)
BEST = ProcessRequest("m", "conllu", "conllu", TreeRequest("kbest", 10), tags=False)


def in_a_loop(test: Callable[[Service], None]) -> Callable[[Parser], None]:
    @wraps(test, updated=())
    def run(parser: Parser) -> None:
        async def work() -> None:
            test(Service({"m": parser}, Limits(waiting=4)))

        asyncio.run(work())

    del run.__wrapped__  # pytest reads the arguments of the outer function
    return run


def job(*words: int, request: ProcessRequest = PARSE) -> Job:
    """A request of sentences of so many words."""
    return Job(request, [ConlluSentence.from_forms(["w"] * count) for count in words])


@in_a_loop
def test_equal_requests_are_taken_together_first_come_first_served(service: Service) -> None:
    jobs = [job(1), job(1, request=BEST), job(2, 3), job(1, request=BEST)]
    for one in jobs:
        service.put(one)
    assert service.take() == [jobs[0], jobs[2]]
    assert service.take() == [jobs[1], jobs[3]]
    assert service.take() == []


@in_a_loop
def test_requests_taken_together_have_a_limit_of_words(service: Service) -> None:
    half, more = job(TOGETHER // 2), job(TOGETHER // 2 + 1)
    lists = job(TOGETHER // 10, request=BEST), job(1, request=BEST)
    for one in (half, more, *lists):
        service.put(one)
    assert [service.take() for _ in range(4)] == [[half], [more], [lists[0]], [lists[1]]]


@in_a_loop
def test_cancelled_requests_are_not_taken_and_take_no_room(service: Service) -> None:
    jobs = [job(1) for _ in range(5)]
    for one in jobs[:4]:
        service.put(one)
    with pytest.raises(RequestError) as refused:
        service.put(jobs[4])
    assert refused.value.status == 503 and "4 requests wait already" in str(refused.value.text)
    jobs[0].lists.cancel()
    service.put(jobs[4])
    assert service.take() == jobs[1:]


def metrics(text: str) -> dict[str, float]:
    """The values by name and labels."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {" ".join([sample.name, *sample.labels.values()]): sample.value for sample in samples}


def test_what_was_done_is_counted(parser: Parser) -> None:
    with served({'a"b': parser, "c": parser}) as server:
        server.process("a b\nc", input="horizontal", model='a"b')
        server.process("a b\nc", input="horizontal", model="c", kbest=2)
        server.process("a b\nc", input="horizontal", model="d")
        server.ask("GET", "/nix")
        answer = server.ask("GET", "/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        found = metrics(answer.body.decode())
    expected = {
        "treeparse_requests_total /process 200": 2,
        "treeparse_requests_total /process 404": 1,
        "treeparse_requests_total other 404": 1,
        'treeparse_words_total a"b': 3,
        "treeparse_words_total c": 3,
        "treeparse_sentences_total c": 2,
        "treeparse_clients_left_total": 0,
        "treeparse_request_seconds_count": 3,
        "treeparse_request_seconds_bucket +Inf": 3,
        "treeparse_queue_requests": 0,
        "treeparse_queue_words": 0,
    }
    assert {name: found[name] for name in expected} == expected
    assert 0 < found["treeparse_parsing_seconds_total c"] < found["treeparse_request_seconds_sum"]


def test_health_is_that_of_the_parser(parser: Parser) -> None:
    server: Server
    with served({"one": HeldModel(parser)}) as server:
        assert server.ask("GET", "/health").status == 200
        server.run(server.service.stop())
        answer = server.ask("GET", "/health")
        assert (answer.status, answer.json) == (503, {"status": "the parser has stopped"})
