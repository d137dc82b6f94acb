"""Clients that are slow, faulty or gone: they are answered or left, and nobody else is hurt."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from helpers.served import Answer, HeldModel, Server, served
from helpers.waiting import wait_until

from treeparse.model import Parser
from treeparse.serve import Limits

HEAD = b"POST /process HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
GOOD = b"input=horizontal&data=a+b"
REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD


@pytest.fixture
def model(parser: Parser) -> HeldModel:
    return HeldModel(parser)


@pytest.fixture
def hurried(model: HeldModel) -> Iterator[Server]:
    """Takes three requests that wait, and clients that send within a second."""
    with served({"one": model}, Limits(waiting=3, client_seconds=1, request_bytes=5000)) as server:
        yield server
        model.free.set()


def received(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    parts: list[bytes] = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def assert_well(server: Server) -> None:
    assert server.ask("GET", "/health").json == {"status": "ok"}
    assert "\n1\ta\t" in server.process("a b", input="horizontal").result


def test_requests_whose_headers_never_end_are_closed(hurried: Server) -> None:
    begun = [b"", b"POST /process HT", HEAD]
    with ExitStack() as stack:
        connections = [stack.enter_context(hurried.connect()) for _ in begun]
        for connection, sent in zip(connections, begun, strict=True):
            connection.sendall(sent)
            assert_well(hurried)
        assert [received(connection) for connection in connections] == [b"", b"", b""]
    assert_well(hurried)


def test_a_body_that_does_not_come_is_answered_and_closed(hurried: Server) -> None:
    with hurried.connect() as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\ndata=a")
        assert_well(hurried)
        answer = received(connection)
    assert (
        answer.startswith(b"HTTP/1.1 408 ") and b"The request was not sent within 1 seconds: send it again." in answer
    )
    assert_well(hurried)


@pytest.mark.parametrize(
    "sent", [b"nonsense\r\n\r\n", b"GET /process?data=" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"]
)
def test_what_is_no_http_is_refused(hurried: Server, sent: bytes) -> None:
    with hurried.connect() as connection:
        connection.sendall(sent)
        answer = received(connection)
    assert answer.startswith(b"HTTP/1.") and answer.split(b" ", 2)[1] == b"400"
    assert b"Traceback" not in answer
    assert_well(hurried)


def test_a_body_that_is_too_long_is_not_awaited(hurried: Server) -> None:
    part = b"a" * 4096
    for length, parts in (
        (b"Content-Length: 99999999999\r\n\r\n", part * 2),
        (b"Transfer-Encoding: chunked\r\n\r\n", (b"1000\r\n" + part + b"\r\n") * 2),
    ):
        with hurried.connect() as connection:
            connection.sendall(HEAD + length + parts)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413 ")
    assert_well(hurried)


def background(server: Server, pool: ThreadPoolExecutor, data: str) -> "Future[Answer]":
    return pool.submit(server.process, data, input="horizontal")


@pytest.mark.parametrize("at_once", [False, True])
def test_a_client_that_has_gone_is_not_parsed_for(hurried: Server, model: HeldModel, at_once: bool) -> None:
    with ThreadPoolExecutor() as pool:
        model.hold()
        first = background(hurried, pool, "a b")
        assert model.begun.wait(10)
        with hurried.connect() as connection:
            connection.sendall(REQUEST.replace(b"a+b", b"x+y"))
            wait_until(lambda: hurried.metric("treeparse_queue_requests") == 1)
            if at_once:  # by a reset
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wait_until(lambda: hurried.metric("treeparse_clients_left_total") == 1)
        assert hurried.metric("treeparse_queue_requests") == 0
        model.free.set()
        assert first.result().status == 200
    assert_well(hurried)
    assert model.given == [[("a", "b")], [("a", "b")]]


def test_too_many_that_wait_are_told_to_come_again(hurried: Server, model: HeldModel) -> None:
    with ThreadPoolExecutor() as pool:
        model.hold()
        others = [background(hurried, pool, "a b")]
        assert model.begun.wait(10)
        others += [background(hurried, pool, f"a {word}") for word in "cde"]
        wait_until(lambda: hurried.metric("treeparse_queue_words ") == 6)
        refused = hurried.process("z", input="horizontal")
        assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
        assert refused.sentence == "3 requests wait already: retry later."
        assert hurried.ask("GET", "/health").status == 200
        model.free.set()
        assert [other.result().status for other in others] == [200] * 4
    assert [len(sentences) for sentences in model.given] == [1, 3]  # those that waited were parsed together


def test_a_request_that_waits_too_long_is_told_to_come_again(model: HeldModel) -> None:
    with served({"one": model}, Limits(seconds=0.3)) as server, ThreadPoolExecutor() as pool:
        model.hold()
        first, second = (background(server, pool, data) for data in ("a", "b"))
        for late in (first.result(), second.result()):
            assert (late.status, late.headers["Retry-After"]) == (503, "2")
            assert late.sentence == "The request was not parsed within 0.3 seconds: retry later."
        model.free.set()
        assert_well(server)


def test_what_cannot_be_parsed_fails_alone(
    hurried: Server, model: HeldModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    find_trees = model.find_trees

    def sometimes(sentences: list, *arguments: object) -> object:
        if any("bad" in sentence.forms for sentence in sentences):
            raise RuntimeError("a bug")
        return find_trees(sentences, *arguments)

    monkeypatch.setattr(model, "find_trees", sometimes, raising=False)
    with ThreadPoolExecutor() as pool:
        model.hold()
        others = [background(hurried, pool, "a b")]
        assert model.begun.wait(10)
        others += [background(hurried, pool, data) for data in ("c", "bad", "d")]
        wait_until(lambda: hurried.metric("treeparse_queue_requests") == 3)
        model.free.set()
        answers = [other.result() for other in others]
    assert [answer.status for answer in answers] == [200, 200, 500, 200]
    assert "a bug" in caplog.text
    assert_well(hurried)


def test_requests_in_progress_are_answered_before_the_end(model: HeldModel) -> None:
    with served({"one": model}) as server, ThreadPoolExecutor() as pool:
        model.hold()
        first = background(server, pool, "a b")
        assert model.begun.wait(10)
        second = background(server, pool, "c")
        wait_until(lambda: server.metric("treeparse_queue_requests") == 1)
        server.stop()
        server.run(asyncio.sleep(0.1))
        model.free.set()
        assert [first.result().status, second.result().status] == [200, 200]
    with pytest.raises(ConnectionRefusedError):
        server.connect()
