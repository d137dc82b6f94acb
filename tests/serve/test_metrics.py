"""What /metrics and /health say, read as Prometheus reads it."""

import re

from helpers.served import HeldModel, Server, served

from treeparse.model import Parser
from treeparse.serve.metrics import ServerMetrics

SAMPLE = re.compile(r'([a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? (\S+)')


def metrics(text: str) -> dict[str, float]:
    """The values by name and labels; every line is a comment or a sample, and every name has its type before it."""
    found: dict[str, float] = {}
    types: set[str] = set()
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# TYPE "):
            types.add(line.split(" ")[2])
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] in types or re.sub("_(bucket|sum|count)$", "", match[1]) in types
            assert match[1] + (match[2] or "") not in found
            found[match[1] + (match[2] or "")] = float(match[3])
    return found


def test_what_was_done_is_counted(parser: Parser) -> None:
    with served({'a"b': parser, "c": parser}) as server:
        server.process("a b\nc", input="horizontal", model='a"b')
        server.process("a b\nc", input="horizontal", model="c", kbest=2)
        server.process("a b\nc", input="horizontal", model="d")
        server.ask("GET", "/nix")
        answer = server.ask("GET", "/metrics")
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = metrics(answer.body.decode())
    expected = {
        'treeparse_requests_total{path="/process",status="200"}': 2,
        'treeparse_requests_total{path="/process",status="404"}': 1,
        'treeparse_requests_total{path="other",status="404"}': 1,
        'treeparse_words_total{model="a\\"b"}': 3,
        'treeparse_words_total{model="c"}': 3,
        'treeparse_sentences_total{model="c"}': 2,
        "treeparse_clients_left_total": 0,
        "treeparse_request_seconds_count": 3,
        'treeparse_request_seconds_bucket{le="+Inf"}': 3,
        "treeparse_queue_requests": 0,
        "treeparse_queue_words": 0,
    }
    assert {name: found[name] for name in expected} == expected
    assert 0 < found['treeparse_parsing_seconds_total{model="c"}'] < found["treeparse_request_seconds_sum"]


def test_times_fall_into_classes_that_add_up() -> None:
    counts_of_server = ServerMetrics(["m"])
    for seconds in (0.01, 0.02, 2.0, 2.5, 99.0):
        counts_of_server.answered("/process", 200, seconds)
    counts_of_server.answered("/models", 200, 5.0)
    found = metrics(counts_of_server.text({}))
    counts = {
        le: found[f'treeparse_request_seconds_bucket{{le="{le}"}}'] for le in ("0.01", "0.03", "1.0", "3.0", "30.0")
    }
    assert counts == {"0.01": 1, "0.03": 2, "1.0": 2, "3.0": 4, "30.0": 4}
    assert found['treeparse_request_seconds_bucket{le="+Inf"}'] == 5
    assert found["treeparse_request_seconds_sum"] == 103.53


def test_health_is_that_of_the_parser(parser: Parser) -> None:
    server: Server
    with served({"one": HeldModel(parser)}) as server:
        assert server.ask("GET", "/health").status == 200
        server.service.queue.close()
        server.service.stop()
        answer = server.ask("GET", "/health")
        assert (answer.status, answer.json) == (503, {"status": "the parser has stopped"})
        assert server.process("a", input="horizontal").status == 503
