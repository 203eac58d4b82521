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
from bothy_device.failure import Failure
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
from bothy_wire.unreachable import explain

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


class Stream:
    """An identified stream connection."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._heard = asyncio.Event()

    async def receive(self) -> Frame | bytes:
        """The next frame or channel message. Raises :class:`StreamClosedError`, also for what is no frame (4105)."""
        item = await _receive(self._connection)
        self._heard.set()
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
        """Return when nothing at all came for ``interval`` seconds and for ``grace`` seconds after a ping.

        A pong alone is no measure: on a slow line it may be late behind data that shows the relay's life as well.
        """
        while True:
            if await self._silent(interval):
                try:
                    pong = asyncio.ensure_future(await self._connection.ping())
                except ConnectionClosed:
                    return
                pong.add_done_callback(self._ponged)
                if await self._silent(grace):
                    return

    async def _silent(self, seconds: float) -> bool:
        self._heard.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        except TimeoutError:
            return True
        return False

    def _ponged(self, pong: asyncio.Future[float]) -> None:
        if not pong.cancelled() and pong.exception() is None:
            self._heard.set()

    async def close(self, code: int) -> None:
        """Say good-bye with a close code."""
        await self._connection.close(code)


@asynccontextmanager
async def dial(
    login: Login, path: str, stream_token: str, session_id: UUID, *, wire: Wire, patience: float
) -> AsyncIterator[Stream]:
    """An identified stream connection, closed at the end. ``patience`` in seconds bounds each step.

    Raises :class:`StreamClosedError` when the relay closes it with a code, :class:`Failure` when it cannot be reached.
    """
    try:
        connection = await connect(
            "ws" + login.server.removeprefix("http") + path,
            subprotocols=[Subprotocol(STREAM_SUBPROTOCOL)],
            compression=None,  # ciphertext does not shrink
            max_size=wire.max_frame_bytes,
            open_timeout=patience,
            close_timeout=CLOSE_TIMEOUT,
            ping_interval=None,  # see Stream.watch: a pong may be late behind data
            ssl=tls.context(login.server),
            user_agent_header="bothy",
        )
    except InvalidStatus as error:
        raise Failure(
            f"{login.server} refused the stream connection with {error.response.status_code}: a proxy on the way may not"
            " pass WebSockets, or this is no bothy relay"
        ) from error
    except (OSError, WebSocketException, ImportError) as error:
        raise Failure(explain(login.server, error)) from error
    try:
        await _identify(connection, login, stream_token, session_id, patience)
        yield Stream(connection)
    finally:
        await connection.close()


async def _identify(
    connection: ClientConnection, login: Login, stream_token: str, session_id: UUID, patience: float
) -> None:
    try:
        async with asyncio.timeout(patience):
            await _exchange(connection, login, stream_token, session_id)
    except TimeoutError:
        raise Failure(f"{login.server} accepted the connection and then said nothing; try again") from None


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
