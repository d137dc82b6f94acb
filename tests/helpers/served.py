"""A server in a thread of its own, clients of it, and a model that waits until it may parse."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from helpers.waiting import PATIENCE

from treeparse.data.raw_text import Tokenizer
from treeparse.model import Parser
from treeparse.serve import Limits
from treeparse.serve.server import listening
from treeparse.serve.service import Service


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> str:
        assert self.status == 200, self.body
        return self.json["result"]

    @property
    def sentence(self) -> str:
        """What is said of a fault."""
        assert self.headers["Content-Type"].startswith("text/plain"), self.headers
        return self.body.decode().removesuffix("\n")


@dataclass
class Server:
    """One that answers, until ``stop``."""

    service: Service
    port: int
    stop: Callable[[], None]
    loop: asyncio.AbstractEventLoop

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do work in the thread of the server."""
        asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def process(self, data: str | bytes, **parameters: object) -> Answer:
        """Parse, by a body that is urlencoded."""
        body = urlencode({"data": data, **parameters}).encode()
        return self.ask("POST", "/process", body, Content_Type="application/x-www-form-urlencoded")

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def metric(self, name: str) -> float:
        lines = self.ask("GET", "/metrics").body.decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@contextmanager
def served(
    models: Mapping[str, Any],
    limits: Limits | None = None,
    tokenizer: Tokenizer | None = None,
    origins: Sequence[str] = (),
) -> Iterator[Server]:
    """Serve models; they are parsers, or what has the same methods."""
    found: list[str] = []
    started, ended = threading.Event(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    stopped = asyncio.Event()
    service = Service(models, limits, tokenizer)

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        async with listening(service, "127.0.0.1", 0, origins) as address:
            found.append(address)
            started.set()
            await stopped.wait()

    def work() -> None:
        try:
            asyncio.run(run())
        finally:
            started.set()
            ended.set()

    def stop() -> None:
        if not ended.is_set():
            loops[0].call_soon_threadsafe(stopped.set)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert started.wait(PATIENCE)
    try:
        yield Server(service, cast(int, urlsplit(found[0]).port), stop, loops[0])
    finally:
        stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


class HeldModel:
    """A parser that parses only while ``free`` is set, and knows which sentences it was given since it began."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.free = threading.Event()
        self.free.set()
        self.begun = threading.Event()
        self.given: list[list[tuple[str, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.parser, name)

    def find_trees(self, sentences: Any, *arguments: Any, **options: Any) -> Any:
        self.given.append([sentence.forms for sentence in sentences])
        self.begun.set()
        assert self.free.wait(PATIENCE)
        return self.parser.find_trees(sentences, *arguments, **options)

    def hold(self) -> None:
        """From now on parse nothing."""
        self.given.clear()
        self.begun.clear()
        self.free.clear()
