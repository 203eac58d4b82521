"""One WebSocket to the server: how it is dialled, kept alive, read and left."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from bothy_host.clock import steady
from bothy_wire.close_codes import CloseCode, fit_reason

NO_CODE = int(CloseCode.ABNORMAL)


class DialError(Exception):
    """No WebSocket came up. The message is one line for the operator."""


@dataclass(frozen=True, slots=True)
class Manner:
    """Seconds and bytes of a connection."""

    dial_timeout: float
    close_timeout: float
    ping_interval: float
    ping_timeout: float
    max_frame_bytes: int


class Connection(ClientConnection):
    """A connection that knows when it last heard anything; any byte counts as life."""

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
) -> AsyncIterator[Connection]:
    """A connection that is kept alive while the block runs and aborted behind it. Raises :class:`DialError`."""
    connection = await _connect(audience, path, subprotocol, manner, tls)
    alive = asyncio.create_task(_keep_alive(connection, manner))
    try:
        yield connection
    finally:
        alive.cancel()
        connection.transport.abort()
        with contextlib.suppress(asyncio.CancelledError, ConnectionClosed):
            await alive


class Outbox:
    """Messages on their way to one connection, in order. The windows of its users bound it."""

    def __init__(self) -> None:
        self._messages: deque[str | bytes] = deque()
        self._filled = asyncio.Event()

    def put(self, message: str | bytes) -> None:
        """Queue a text or a binary message."""
        self._messages.append(message)
        self._filled.set()

    def clear(self) -> None:
        """Drop what is not under way yet."""
        self._messages.clear()

    async def empty_into(self, connection: Connection) -> None:
        """Send until the connection is gone or the task is cancelled."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._filled.wait()
                self._filled.clear()
                while self._messages:
                    await connection.send(self._messages.popleft())


async def leave(connection: Connection, code: int, reason: str = "") -> None:
    """Say why and go; gives up after the close timeout, whatever is still queued."""
    await connection.close(code, fit_reason(reason))


def close_code(error: ConnectionClosed) -> int:
    """The code that the server sent, else 1006."""
    return NO_CODE if error.rcvd is None else error.rcvd.code


async def _connect(audience: str, path: str, subprotocol: str, manner: Manner, tls: ssl.SSLContext) -> Connection:
    try:
        connection = await connect(
            f"ws{audience.removeprefix('http')}{path}",
            subprotocols=[Subprotocol(subprotocol)],
            compression=None,
            create_connection=Connection,
            open_timeout=manner.dial_timeout,
            close_timeout=manner.close_timeout,
            ping_interval=None,
            max_size=manner.max_frame_bytes,
            ssl=tls if audience.startswith("https:") else None,
        )
    except ssl.SSLError as error:
        raise DialError(f"TLS: {getattr(error, 'verify_message', None) or error.reason or error}") from error
    except (OSError, TimeoutError, WebSocketException) as error:
        raise DialError(str(error) or "no answer in time") from error
    assert isinstance(connection, Connection)
    return connection


async def _keep_alive(connection: Connection, manner: Manner) -> None:
    """Ping a silent connection, abort a dead one. A ping that cannot be written says nothing about what is read."""
    while True:
        silent = steady() - connection.heard_at
        if silent >= manner.ping_interval + manner.ping_timeout:
            connection.transport.abort()
            return
        if silent < manner.ping_interval:
            await asyncio.sleep(manner.ping_interval - silent)
            continue
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(manner.ping_timeout):
                await connection.ping()
        await asyncio.sleep(max(connection.heard_at + manner.ping_interval + manner.ping_timeout - steady(), 0.0))
