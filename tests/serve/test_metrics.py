"""What /metrics and /health say, read as Prometheus reads it."""

from helpers.served import HeldModel, Server, served
from prometheus_client.parser import text_string_to_metric_families

from treeparse.model import Parser


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
