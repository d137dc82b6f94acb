"""The server: its socket, its start and its end."""

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

QUIET = logging.Logger("faulty HTTP", logging.CRITICAL + 1)  # clients' faults are answered, and are nobody else's


def serve(
    models: Mapping[str, Parser | Ensemble],
    *,
    host: str = HOST,
    port: int = PORT,
    limits: Limits | None = None,
    ready: Callable[[str], object] = str,
) -> None:
    """Serve models until SIGINT or SIGTERM, then answer the requests under way; another signal leaves them unanswered.

    Args:
        models: by their names, the first one the default.
        host: the address that it listens at; others than the machine itself reach ``0.0.0.0``.
        port: its port, 0 for one that is free.
        limits: of requests.
        ready: is given the server's address once requests are answered.

    Raises:
        TreeparseError: without a model, and where the address or the port cannot be had.
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
        gc.freeze()  # what is loaded stays: the collector need not look through it again and again
        ready(address)
        await stop.wait()


@asynccontextmanager
async def listening(service: Service, host: str, port: int) -> AsyncIterator[str]:
    """Answer requests within it; in the end those that are under way, and no new ones. Gives the server's address."""
    application = Application(service)
    seconds = service.limits.client_seconds
    runner = web.AppRunner(
        application.web,
        access_log=None,
        handler_cancellation=True,  # where the client has gone
        keepalive_timeout=seconds,  # and for the headers of a request
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
        await _start(site, host, port)
        bound = runner.addresses[0]
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        yield f"http://{shown}:{bound[1]}"
        await site.stop()
        await application.drain()
    finally:
        await runner.cleanup()
        await asyncio.to_thread(service.stop)


async def _start(site: web.TCPSite, host: str, port: int) -> None:
    try:
        await site.start()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TreeparseError(f"The server cannot listen at {host}, port {port}: {reason}.") from error
