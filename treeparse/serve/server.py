"""The HTTP server: it answers requests with a service until a signal, then finishes the requests in progress."""

import asyncio
import gc
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

import prometheus_client
from aiohttp import web

from treeparse.data.raw_text import Tokenizer
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.serve.openapi import description
from treeparse.serve.process_request import Limits, RequestError
from treeparse.serve.service import Service, as_json

HOST, PORT = "127.0.0.1", 8001
LONGEST_QUERY = 1 << 16  # bytes of the first line of a request
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


def serve(
    models: Mapping[str, Parser | Ensemble],
    *,
    host: str = HOST,
    port: int = PORT,
    limits: Limits | None = None,
    tokenizer: Tokenizer | None = None,
    origins: Sequence[str] = (),
    ready: Callable[[str], object] = str,
) -> None:
    """Serve models until SIGINT, SIGTERM or SIGHUP, then answer the requests in progress; a second signal ends at once.

    After SIGHUP, the signal is sent again once the server has ended, for the handler from before; a SIGHUP that is
    ignored, as under nohup, stays ignored.

    Args:
        models: the models by name, the default one first.
        host: the address to listen at; other machines reach ``0.0.0.0``.
        port: the port to listen at, 0 for any free one.
        limits: the limits of requests.
        tokenizer: splits raw text, see `treeparse.data.raw_text`; None if there is none.
        origins: the web sites whose pages may use the answers, such as https://example.org; ``*`` for all (CORS).
        ready: called with the server's address once requests are answered.

    Raises:
        TreeparseError: there is no model, or the server cannot listen at the address and port.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    ends = (signal.SIGINT, signal.SIGTERM)
    numbers = [number for number, handler in handlers.items() if number in ends or handler is not signal.SIG_IGN]
    received = asyncio.run(_until_signalled(numbers, Service(models, limits, tokenizer), host, port, origins, ready))
    if received not in ends:
        signal.signal(received, handlers[received])
        signal.raise_signal(received)


async def _until_signalled(
    numbers: Sequence[int],
    service: Service,
    host: str,
    port: int,
    origins: Sequence[str],
    ready: Callable[[str], object],
) -> int:
    """Serve until one of some signals, and return it."""
    loop = asyncio.get_running_loop()
    received: asyncio.Future[int] = loop.create_future()

    def end(number: int) -> None:
        if not received.done():
            received.set_result(number)
        for handled in numbers:
            loop.remove_signal_handler(handled)
            signal.signal(handled, signal.SIG_DFL)  # the next signal ends the process

    for number in numbers:
        loop.add_signal_handler(number, end, number)
    async with listening(service, host, port, origins) as address:
        gc.collect()
        gc.freeze()  # the garbage collector no longer traverses the models
        ready(address)
        return await received


@asynccontextmanager
async def listening(service: Service, host: str, port: int, origins: Sequence[str] = ()) -> AsyncIterator[str]:
    """Answer requests within the block, which gets the server's address; at its end finish requests in progress."""
    limits = service.limits
    runner = web.AppRunner(
        Application(service, origins).web,
        access_log=None,
        handler_cancellation=True,  # if the client has left
        keepalive_timeout=limits.client_seconds,  # also for the headers of a request
        lingering_time=limits.client_seconds,  # for the rest of a request that was refused
        shutdown_timeout=limits.client_seconds + limits.seconds,
        max_line_size=LONGEST_QUERY,
    )
    service.start()
    try:
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise TreeparseError(f"The server cannot listen at {host}, port {port}: {reason}.") from error
        bound = runner.addresses[0]
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        yield f"http://{shown}:{bound[1]}"
    finally:
        await runner.cleanup()
        await service.stop()


class Application:
    """Answers HTTP requests with a service; pages of some ``origins`` may use the answers."""

    def __init__(self, service: Service, origins: Sequence[str] = ()) -> None:
        self._service, self._origins = service, origins
        self.web: web.Application = web.Application(client_max_size=service.limits.request_bytes)
        self.web.on_response_prepare.extend([self._count, self._allow])
        self.web.add_routes(
            [
                web.get("/process", self._process, allow_head=False),
                web.post("/process", self._process),
                web.get("/models", self._models),
                web.post("/models", self._models),
                web.get("/health", self._health),
                web.get("/metrics", self._metrics),
                web.get("/openapi.json", self._openapi),
            ]
        )

    async def _process(self, request: web.Request) -> web.Response:
        seconds = self._service.limits.client_seconds
        try:
            async with asyncio.timeout(seconds):
                values = await parameters(request)
        except TimeoutError as error:
            raise RequestError(408, f"The request was not sent within {seconds:g} seconds: send it again.") from error
        with self._service.metrics.seconds.time():
            return _json(await self._service.process(values))

    async def _models(self, request: web.Request) -> web.Response:
        models = self._service.models
        tokenizer = [] if self._service.tokenizer is None else ["tokenizer"]
        abilities = {
            name: [*tokenizer, *(["tagger"] if model.tag_names else []), "parser"] for name, model in models.items()
        }
        return _json(as_json({"models": abilities, "default_model": next(iter(models))}))

    async def _health(self, request: web.Request) -> web.Response:
        is_well = self._service.is_well()
        state = "ok" if is_well else "the parser has stopped"
        return _json(as_json({"status": state}), status=200 if is_well else 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        text = prometheus_client.generate_latest(self._service.metrics.registry)
        return web.Response(body=text, headers={"Content-Type": prometheus_client.CONTENT_TYPE_LATEST})

    async def _openapi(self, request: web.Request) -> web.Response:
        return _json(as_json(description()))

    async def _allow(self, request: web.Request, response: web.StreamResponse) -> None:
        """Let a page of another site read the answer, if its site may."""
        origin = request.headers.get("Origin")
        if origin is not None and ("*" in self._origins or origin in self._origins):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Vary"] = "Origin"

    async def _count(self, request: web.Request, response: web.StreamResponse) -> None:
        route = request.match_info.route.resource
        path = "other" if route is None else route.canonical  # unknown paths are many
        self._service.metrics.requests.labels(path, response.status).inc()


async def parameters(request: web.Request) -> dict[str, str]:
    """Return the parameters of a request by name, from its query and from its body, which is a form.

    Raises:
        RequestError: the body is faulty or has another content type, or a name is repeated.
    """
    try:
        pairs = [*_urlencoded(request.rel_url.raw_query_string), *await _form(request)]
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise RequestError(400, f"The parameters must be UTF-8, got the byte 0x{byte:02x}.") from error
    except ValueError as error:
        raise RequestError(400, f"The {request.content_type} body cannot be read: {error}") from error
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise RequestError(400, f"The parameter {name!r} is given twice: give it once.")
    return dict(pairs)


def _urlencoded(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text, keep_blank_values=True, errors="strict")


async def _form(request: web.Request) -> list[tuple[str, str]]:
    if not request.body_exists:
        return []
    if request.content_type == URLENCODED:
        return _urlencoded((await request.read()).decode())
    if request.content_type != MULTIPART:
        raise RequestError(400, f"A body must be {URLENCODED} or {MULTIPART}, got {request.content_type}.")
    return [(name, _text(value)) for name, value in (await request.post()).items()]


def _text(value: "str | bytes | bytearray | web.FileField") -> str:
    """Return the text of a part of a form, which may be a file."""
    data = value.file.read() if isinstance(value, web.FileField) else value
    return data if isinstance(data, str) else data.decode()


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json", charset="utf-8")
