"""The stream connection: dial, identify, and then frames and channel messages in both directions."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from bothy_device import tls
from bothy_device.failure import Unreachable
from bothy_device.settings import Wire
from bothy_device.state import Login
from bothy_wire.close_codes import CloseCode
from bothy_wire.errors import FrameError
from bothy_wire.frames import (
    Decoder,
    Frame,
    SideAccepted,
    SidePaired,
    SideUnpaired,
    StreamHello,
    StreamIdentify,
    encode,
)
from bothy_wire.limits import STREAM_SUBPROTOCOL
from bothy_wire.signing import Purpose, sign
from bothy_wire.unreachable import explain, is_local

CLOSE_TIMEOUT = 1.0
"""Seconds that the relay has to answer our close frame."""

_hello = Decoder(StreamHello)
_accepted = Decoder(SideAccepted)
_frames = Decoder(SidePaired, SideUnpaired)


class StreamClosedError(Exception):
    """The connection is gone: the close code (1006 without a close frame) and the reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class Socket(ClientConnection):
    """A WebSocket that knows when it last heard anything; any byte counts as life."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heard_at = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Bytes from the network."""
        self.heard_at = self.loop.time()
        super().data_received(data)


class _Dial(connect):
    """Only the relay itself is dialled: no answer of it leads to another address."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Follow none."""
        return exc


class Stream:
    """An identified stream connection."""

    def __init__(self, connection: Socket) -> None:
        self._connection = connection

    async def receive(self) -> Frame | bytes:
        """The next frame or channel message. Raises :class:`StreamClosedError`, also for what is no frame (4105)."""
        item = await _receive(self._connection)
        if isinstance(item, bytes):
            return item
        frame: SidePaired | SideUnpaired = await _decode(self._connection, _frames, item)
        return frame

    async def send(self, item: Frame | bytes) -> None:
        """Send one; waits while the socket takes nothing. Raises :class:`StreamClosedError`."""
        try:
            await self._connection.send(item if isinstance(item, bytes) else encode(item))
        except ConnectionClosed as error:
            raise _closed(error) from error

    async def watch(self, interval: float, grace: float) -> None:
        """Ping once in ``interval`` seconds; return when not a byte came for that long and ``grace`` seconds more.

        The ping goes out whatever is heard: while a long repaint trickles in, the relay hears nothing else of us. And no
        pong is waited for, because on a slow line it is late behind data that shows the relay's life as well.
        """
        loop = asyncio.get_running_loop()
        pinged_at = loop.time()
        while (now := loop.time()) < self._connection.heard_at + interval + grace:
            if now >= pinged_at + interval:
                pinged_at = now
                try:
                    async with asyncio.timeout(grace):
                        await self._connection.ping()
                except TimeoutError:
                    continue  # a full socket takes it later
                except ConnectionClosed:
                    return
            else:
                await asyncio.sleep(min(pinged_at + interval, self._connection.heard_at + interval + grace) - now)

    async def close(self, code: int) -> None:
        """Say good-bye with a close code."""
        await self._connection.close(code)

    def abort(self) -> None:
        """Drop the connection at once, without a word."""
        self._connection.transport.abort()


@asynccontextmanager
async def dial(
    login: Login, path: str, stream_token: str, session_id: UUID, *, wire: Wire, patience: float
) -> AsyncIterator[Stream]:
    """An identified stream connection, gone at the end whatever the relay does. ``patience`` in seconds bounds each step.

    Raises :class:`StreamClosedError` when the relay closes it with a code, :class:`Unreachable` when it is not found.
    """
    try:
        connection = await _Dial(
            "ws" + login.server.removeprefix("http") + path,
            subprotocols=[Subprotocol(STREAM_SUBPROTOCOL)],
            compression=None,  # ciphertext does not shrink
            create_connection=Socket,
            max_size=wire.max_frame_bytes,
            open_timeout=patience,
            close_timeout=CLOSE_TIMEOUT,
            ping_interval=None,  # see Stream.watch: a pong may be late behind data
            ssl=tls.context(login.server),
            user_agent_header="bothy",
        )
    except InvalidStatus as error:
        raise Unreachable(
            f"{login.server} refused the stream connection with {error.response.status_code}: a proxy on the way may not"
            " pass WebSockets, or this is no bothy relay"
        ) from error
    except (OSError, WebSocketException, ImportError) as error:
        raise Unreachable(explain(login.server, error), local=is_local(error)) from error
    try:
        assert isinstance(connection, Socket)
        await _identify(connection, login, stream_token, session_id, patience)
        yield Stream(connection)
    finally:
        connection.transport.abort()


async def _identify(
    connection: ClientConnection, login: Login, stream_token: str, session_id: UUID, patience: float
) -> None:
    try:
        async with asyncio.timeout(patience):
            await _exchange(connection, login, stream_token, session_id)
    except TimeoutError:
        raise Unreachable(f"{login.server} accepted the connection and then said nothing; try again") from None


async def _exchange(connection: ClientConnection, login: Login, stream_token: str, session_id: UUID) -> None:
    hello: StreamHello = await _decode(connection, _hello, await _receive(connection))
    signature = sign(
        login.signer,
        Purpose.STREAM_IDENTIFY,
        login.server,
        hello.challenge,
        str(session_id),
        hashlib.sha256(stream_token.encode()).digest(),
    )
    try:
        await connection.send(encode(StreamIdentify(stream_token=stream_token, signature=signature)))
    except ConnectionClosed as error:
        raise _closed(error) from error
    await _decode(connection, _accepted, await _receive(connection))


async def _receive(connection: ClientConnection) -> str | bytes:
    try:
        return await connection.recv()
    except ConnectionClosed as error:
        raise _closed(error) from error


async def _decode(connection: ClientConnection, decoder: Decoder, item: str | bytes) -> Any:
    try:
        if isinstance(item, bytes):
            raise FrameError("binary before the side was accepted")
        return decoder.decode(item)
    except FrameError as error:
        await connection.close(CloseCode.PROTOCOL_VIOLATION)
        raise StreamClosedError(CloseCode.PROTOCOL_VIOLATION, "") from error


def _closed(error: ConnectionClosed) -> StreamClosedError:
    """What the relay said; without its close frame 1006, or the code of our own complaint about what it sent."""
    frame = error.rcvd or (error.sent if error.sent and error.sent.code != CloseCode.NORMAL else None)
    return StreamClosedError(frame.code, frame.reason) if frame else StreamClosedError(CloseCode.ABNORMAL, "")
