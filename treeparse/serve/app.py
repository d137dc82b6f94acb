"""The HTTP interface of the service: an aiohttp application."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from treeparse.serve.forms import parameters
from treeparse.serve.limits import RETRY_AFTER, RequestError
from treeparse.serve.metrics import TYPE
from treeparse.serve.service import Service, as_json

LOG = logging.getLogger(__name__)
PATHS = ("/process", "/models", "/health", "/metrics")
JSON = "application/json"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Application:
    """Answers HTTP requests with a service, and counts the requests in progress."""

    def __init__(self, service: Service) -> None:
        self._service, self._limits = service, service.limits
        self._in_progress = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False
        self.web = web.Application(client_max_size=self._limits.request_bytes, middlewares=[self._answer])
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
            raise RequestError(503, "The server stops.")
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
        try:
            response = await self._response(request, handler)
            path = request.path if request.path in PATHS else "other"
            self._service.metrics.answered(path, response.status, time.perf_counter() - started)
            await self._send(request, response)
            return response
        except asyncio.CancelledError:
            self._service.metrics.left()
            raise
        finally:
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
            LOG.exception("A request to %s failed.", request.path)
            return _plain(500, "The server failed at this request: see its log.")

    async def _send(self, request: web.Request, response: web.StreamResponse) -> None:
        """Send the response; give up if the client takes too long to receive it."""
        try:
            async with asyncio.timeout(self._limits.client_seconds):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            self._service.metrics.left()
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            self._service.metrics.left()


def _plain(status: int, sentence: str) -> web.Response:
    return web.Response(status=status, text=f"{sentence}\n")
