"""The HTTP server: it answers requests with a service until a signal, then finishes the requests in progress."""

import asyncio
import gc
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.serve.connections import Connection, OpenRequest
from treeparse.serve.forms import parameters
from treeparse.serve.limits import RETRY_AFTER, Limits, RequestError
from treeparse.serve.metrics import TYPE
from treeparse.serve.service import Service, as_json

LOG = logging.getLogger(__name__)
HOST, PORT = "127.0.0.1", 8001
BACKLOG = 128  # connections that wait to be accepted
HEADER_LINE = 1 << 16  # bytes of the first line of a request, with its query, and of each header
SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATHS = ("/process", "/models", "/health", "/metrics")
JSON = "application/json"

QUIET = logging.Logger("faulty HTTP", logging.CRITICAL + 1)  # faulty requests are answered, not logged

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def serve(
    models: Mapping[str, Parser | Ensemble],
    *,
    host: str = HOST,
    port: int = PORT,
    limits: Limits | None = None,
    ready: Callable[[str], object] = str,
) -> None:
    """Serve models until SIGINT or SIGTERM, then answer the requests in progress; a second signal ends at once.

    Args:
        models: the models by name, the default one first.
        host: the address to listen at; other machines reach ``0.0.0.0``.
        port: the port to listen at, 0 for any free one.
        limits: the limits of requests.
        ready: called with the server's address once requests are answered.

    Raises:
        TreeparseError: there is no model, or the server cannot listen at the address and port.
    """
    asyncio.run(_until_signalled(Service(models, limits), host, port, ready))


async def _until_signalled(service: Service, host: str, port: int, ready: Callable[[str], object]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        stop.set()
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    for number in SIGNALS:
        loop.add_signal_handler(number, end)
    async with listening(service, host, port) as address:
        gc.collect()
        gc.freeze()  # the garbage collector no longer traverses the models
        ready(address)
        await stop.wait()


@asynccontextmanager
async def listening(service: Service, host: str, port: int) -> AsyncIterator[str]:
    """Answer requests within the block, which gets the server's address; at its end finish requests in progress."""
    application = Application(service)
    seconds = service.limits.client_seconds
    runner = web.AppRunner(
        application.web,
        access_log=None,
        handler_cancellation=True,  # if the client has left
        keepalive_timeout=seconds,  # also for the headers of a request
        lingering_time=min(seconds, 2.0),
        shutdown_timeout=seconds,
        max_line_size=HEADER_LINE,
        max_field_size=HEADER_LINE,
        auto_decompress=False,
        logger=QUIET,
    )
    service.start()
    try:
        await runner.setup()
        inner = runner.server
        assert inner is not None
        try:
            server = await asyncio.get_running_loop().create_server(
                lambda: Connection(inner(), application.open_requests), host, port, backlog=BACKLOG
            )
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise TreeparseError(f"The server cannot listen at {host}, port {port}: {reason}.") from error
        bound = server.sockets[0].getsockname()
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        yield f"http://{shown}:{bound[1]}"
        server.close()
        await application.drain()
    finally:
        await runner.cleanup()
        await asyncio.to_thread(service.stop)


class Application:
    """Answers HTTP requests with a service, and counts the requests in progress."""

    def __init__(self, service: Service) -> None:
        self._service, self._limits = service, service.limits
        self._in_progress = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False
        self.open_requests: dict[asyncio.BaseTransport, OpenRequest] = {}
        self.web: web.Application = web.Application(
            client_max_size=self._limits.request_bytes, middlewares=[self._answer]
        )
        self.web.add_routes(
            [
                web.get("/process", self._process, allow_head=False),
                web.post("/process", self._process),
                web.get("/models", self._models),
                web.post("/models", self._models),
                web.get("/health", self._health),
                web.get("/metrics", self._metrics),
            ]
        )

    async def drain(self) -> None:
        """Refuse new requests, and wait until all requests in progress are answered."""
        self._stopping = True
        await self._idle.wait()

    async def _process(self, request: web.Request) -> web.Response:
        if self._stopping:
            raise RequestError(503, "The server is shutting down: retry later.")
        body = await self._body(request)
        values = parameters(request.rel_url.raw_query_string.encode(), body, request.headers.get("Content-Type", ""))
        return web.Response(body=await self._service.process(values), content_type=JSON, charset="utf-8")

    async def _body(self, request: web.Request) -> bytes:
        if (encoding := request.headers.get("Content-Encoding", "identity")) != "identity":
            raise RequestError(400, f"The body must have no content encoding, got {encoding!r}: send it uncompressed.")
        if (request.content_length or 0) > self._limits.request_bytes:
            raise web.HTTPRequestEntityTooLarge(self._limits.request_bytes)
        try:
            async with asyncio.timeout(self._limits.client_seconds):
                return await request.read()
        except TimeoutError as error:
            seconds = f"{self._limits.client_seconds:g} seconds"
            raise RequestError(408, f"The request was not sent within {seconds}: send it again.") from error

    async def _models(self, request: web.Request) -> web.Response:
        models = self._service.models
        abilities = {name: [*(["tagger"] if model.tag_names else []), "parser"] for name, model in models.items()}
        return web.Response(body=as_json({"models": abilities, "default_model": next(iter(models))}), content_type=JSON)

    async def _health(self, request: web.Request) -> web.Response:
        state = "stopping" if self._stopping else "ok" if self._service.is_well() else "the parser has stopped"
        return web.Response(body=as_json({"status": state}), content_type=JSON, status=200 if state == "ok" else 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        text = self._service.metrics.text(self._service.gauges())
        return web.Response(body=text.encode(), headers={"Content-Type": TYPE})

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer with the handler's response or with an error, and count the answer."""
        started = time.perf_counter()
        self._in_progress += 1
        self._idle.clear()
        transport, noted = request.transport, OpenRequest(request)
        if transport is not None:
            self.open_requests[transport] = noted
        try:
            response = await self._response(request, handler)
            noted.is_being_answered = True
            path = request.path if request.path in PATHS else "other"
            self._service.metrics.answered(path, response.status, time.perf_counter() - started)
            await self._send(request, response)
            return response
        except asyncio.CancelledError:
            self._service.metrics.left()
            raise
        finally:
            if transport is not None:
                del self.open_requests[transport]
            self._in_progress -= 1
            if not self._in_progress:
                self._idle.set()

    async def _response(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except RequestError as error:
            response = _plain(error.status, str(error))
            if error.status == 503:
                response.headers["Retry-After"] = str(RETRY_AFTER)
            if error.status == 408:
                response.force_close()
            return response
        except web.HTTPNotFound:
            return _plain(404, f"Unknown path {request.path[:100]}. Paths: {', '.join(PATHS)}.")
        except web.HTTPMethodNotAllowed as error:
            allowed = ", ".join(sorted(error.allowed_methods))
            response = _plain(405, f"{request.path} must be requested by {allowed}, got {request.method}.")
            response.headers["Allow"] = allowed
            return response
        except web.HTTPRequestEntityTooLarge:
            return _plain(413, f"A request must have at most {self._limits.request_bytes:,} bytes: send several.")
        except web.HTTPException as error:
            return _plain(error.status, f"{error.reason}.")
        except Exception:
            LOG.exception("A request to %r failed.", request.path)
            return _plain(500, "The server failed at this request: see its log.")

    async def _send(self, request: web.Request, response: web.StreamResponse) -> None:
        """Send the response; give up if the client takes too long to receive it."""
        try:
            async with asyncio.timeout(self._limits.client_seconds):
                await response.prepare(request)
                await response.write_eof()
        except (TimeoutError, ConnectionError):
            self._service.metrics.left()
            if request.transport is not None:
                request.transport.abort()


def _plain(status: int, sentence: str) -> web.Response:
    return web.Response(status=status, text=f"{sentence}\n")
