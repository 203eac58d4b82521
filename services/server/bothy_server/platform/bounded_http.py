"""What a stranger may hold of the http listener: so many connections, for so long, with so long a head (T-9).

uvicorn's own ``limit_concurrency`` refuses requests; it never refuses a connection that sends none, nor an upgrade, and it
waits for a request without end.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, cast

from bothy_server.platform.uvicorn_takeover import TakeoverHttpProtocol

ABORT = "bothy.abort"
"""Extension of the scope: drop the connection now, with what its peer did not take."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HttpBounds:
    """``connections``: open at once, sockets that left ASGI aside. ``request_timeout``: seconds for a request to arrive
    whole. ``head_bytes``: of its first line and headers, give or take one read of the socket.
    """

    connections: int
    request_timeout: float
    head_bytes: int


class BoundedHttpProtocol(TakeoverHttpProtocol):
    """uvicorn's HTTP protocol within :class:`HttpBounds`."""

    def __init__(self, bounds: HttpBounds, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._bounds = bounds
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes: int | None = 0  # None between the head of a request and the next request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Refuse one connection too many before it said anything."""
        super().connection_made(transport)
        if len(self.connections) > self._bounds.connections:
            _log.warning("connection refused: server.max_connections are open")
            self._refuse(b"503 Service Unavailable")
        else:
            self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse a segment; a head without end is not kept."""
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > self._bounds.head_bytes:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        if self._head_bytes is None:
            self._head_bytes = 0
        self._arm()

    def on_headers_complete(self) -> None:
        """The head is here."""
        self._head_bytes = None
        cast(dict[str, Any], self.scope)["extensions"] = {ABORT: self.transport.abort}
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is here; until the next one uvicorn's keep-alive timeout counts."""
        self._disarm()
        super().on_message_complete()

    def _arm(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self._bounds.request_timeout, self._expire)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self.transport.abort()

    def _refuse(self, status: bytes) -> None:
        self.transport.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
        self.transport.close()
