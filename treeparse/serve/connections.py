"""Connections whose clients may have sent all that they will send, and wait for the answer."""

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
PATIENCE = 0.1  # seconds after the client's end in which most requests are answered; a second look takes twice as long


@dataclass
class OpenRequest:
    """A request in progress."""

    request: web.BaseRequest
    is_being_answered: bool = False


class Connection(asyncio.Protocol):
    """A connection of aiohttp's server that stays open for the answer when the client ends what it sends.

    A client that has left ends it, too. The two differ once something is sent: an interim response, which clients of
    HTTP/1.1 pass over (RFC 9110, section 15.2), and which the system of a client that has left refuses. The request is
    then cancelled.

    Args:
        inner: the connection as aiohttp has it.
        requests: the requests in progress by their transports.
    """

    def __init__(self, inner: web.RequestHandler, requests: Mapping[asyncio.BaseTransport, OpenRequest]) -> None:
        self._inner, self._requests = inner, requests

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, as all methods do, by the inner connection's method."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        self._inner.data_received(data)

    def eof_received(self) -> bool:
        """Keep the connection until all that came is answered."""
        self._inner.close()  # once that is so
        asyncio.get_running_loop().call_later(PATIENCE, self._look_for_client, PATIENCE)
        return True

    def _look_for_client(self, waited: float) -> None:
        found = self._requests.get(self._transport)
        if found is None:
            self._transport.close()
            return
        if found.is_being_answered:
            return
        if not found.request.content.is_eof() or self._is_refused():
            self._transport.abort()
            return
        if waited == PATIENCE and found.request.version >= (1, 1):
            self._transport.write(INTERIM)
        asyncio.get_running_loop().call_later(2 * waited, self._look_for_client, 2 * waited)

    def _is_refused(self) -> bool:
        """Whether the client's system has answered what was sent by a reset, which asyncio sees only when it writes."""
        return self._transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and cancel the request in progress."""
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Stop writing."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Go on writing."""
        self._inner.resume_writing()
