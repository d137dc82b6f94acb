"""The server: it listens, answers until a signal, and finishes the requests in progress."""

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.serve.app import Application
from treeparse.serve.limits import Limits
from treeparse.serve.service import Service

HOST, PORT = "127.0.0.1", 8001
HEADER_LINE = 1 << 16  # bytes of the first line of a request, with its query, and of each header
SIGNALS = (signal.SIGINT, signal.SIGTERM)

QUIET = logging.Logger("faulty HTTP", logging.CRITICAL + 1)  # faulty requests are answered, not logged


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
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise TreeparseError(f"The server cannot listen at {host}, port {port}: {reason}.") from error
        bound = runner.addresses[0]
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        yield f"http://{shown}:{bound[1]}"
        await site.stop()
        await application.drain()
    finally:
        await runner.cleanup()
        await asyncio.to_thread(service.stop)
