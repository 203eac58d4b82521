"""One WebSocket to the server: how it is dialled, kept alive, read and left."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from bothy_host.clock import steady
from bothy_wire.close_codes import CloseCode, fit_reason
from bothy_wire.unreachable import explain

NO_CODE = int(CloseCode.ABNORMAL)


class DialError(Exception):
    """No WebSocket came up. The message is one line for the operator."""


@dataclass(frozen=True, slots=True)
class Manner:
    """Seconds and bytes of a socket."""

    dial_timeout: float
    close_timeout: float
    ping_interval: float
    ping_timeout: float
    max_frame_bytes: int


class Socket(ClientConnection):
    """A WebSocket that knows when it last heard anything; any byte counts as life."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heard_at = steady()

    def data_received(self, data: bytes) -> None:
        """Bytes from the network."""
        self.heard_at = steady()
        super().data_received(data)


@asynccontextmanager
async def dialled(
    audience: str, path: str, subprotocol: str, manner: Manner, tls: ssl.SSLContext
) -> AsyncIterator[Socket]:
    """A socket that is kept alive while the block runs and aborted behind it. Raises :class:`DialError`."""
    socket = await _connect(audience, path, subprotocol, manner, tls)
    alive = asyncio.create_task(_keep_alive(socket, manner))
    try:
        yield socket
    finally:
        alive.cancel()
        socket.transport.abort()
        await asyncio.wait([alive])  # never by awaiting it: a cancellation of ours would pass for one of its own
        if not alive.cancelled():
            alive.exception()  # that the socket is closed is told by whoever reads it


async def leave(socket: Socket, code: int, reason: str = "") -> None:
    """Say why and go; gives up after the close timeout, whatever is still queued."""
    await socket.close(code, fit_reason(reason))


def close_code(error: ConnectionClosed) -> int:
    """The code that the server sent, else 1006."""
    return NO_CODE if error.rcvd is None else error.rcvd.code


class _Dial(connect):
    """Only the server itself is dialled: no answer of it leads to another machine."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Follow none."""
        return exc


async def _connect(audience: str, path: str, subprotocol: str, manner: Manner, tls: ssl.SSLContext) -> Socket:
    try:
        socket = await _Dial(
            f"ws{audience.removeprefix('http')}{path}",
            subprotocols=[Subprotocol(subprotocol)],
            compression=None,
            create_connection=Socket,
            open_timeout=manner.dial_timeout,
            close_timeout=manner.close_timeout,
            ping_interval=None,
            max_size=manner.max_frame_bytes,
            ssl=tls if audience.startswith("https:") else None,
        )
    except (OSError, WebSocketException) as error:
        raise DialError(explain(audience, error)) from error
    assert isinstance(socket, Socket)
    return socket


async def _keep_alive(socket: Socket, manner: Manner) -> None:
    """Ping once an interval, and abort a socket on which not a byte came for an interval and the timeout.

    The ping goes out whatever is heard: behind a long message that only leaves, the other end hears nothing else of us.
    And it is not waited for, because on a slow way it stands behind such a message, and the other end's pings do not.
    """
    patience = manner.ping_interval + manner.ping_timeout
    pinged_at = steady()
    while (now := steady()) < socket.heard_at + patience:
        if now >= pinged_at + manner.ping_interval:
            pinged_at = now
            with contextlib.suppress(TimeoutError):  # a full socket takes it later
                async with asyncio.timeout(manner.ping_timeout):
                    await socket.ping()
        else:
            await asyncio.sleep(min(pinged_at + manner.ping_interval, socket.heard_at + patience) - now)
    socket.transport.abort()
