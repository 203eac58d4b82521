"""A WebSocket leaves ASGI: uvicorn's protocols with one extension, ``bothy.takeover`` (docs/adr/0002-streams-leave-asgi.md).

An endpoint accepts and identifies its peer with ordinary receive and send, then calls
``scope["extensions"]["bothy.takeover"](make)`` and returns. From then on the protocol that ``make`` returned owns the
transport. It gets every byte that the endpoint has not received as a message, from its first frame on. A second
extension, ``bothy.message_limit``, lets an endpoint that stays raise the size of messages once it knows its peer, and a
third, ``bothy.ping``, lets it see whether somebody is there.

To make that possible, uvicorn's parser is fed frame by frame, at most one message ahead of the endpoint. Pass
:class:`TakeoverWebSocketProtocol` as ``ws=`` and :class:`TakeoverHttpProtocol` as ``http=`` in ``uvicorn.Config``; the
second keeps the bytes that follow the upgrade request in the same segment. Both touch private parts of uvicorn, which
is pinned for that; the test of this module names each.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol, TypeVar, cast

from httptools import HttpParserUpgrade
from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from bothy_wire.close_codes import CloseCode

P = TypeVar("P", bound=asyncio.Protocol)

TAKEOVER = "bothy.takeover"
MESSAGE_LIMIT = "bothy.message_limit"
PING = "bothy.ping"
LONGEST_HEADER = 14


class Takeover(Protocol):
    """The extension. Call it once, after accept; receive and send are over then."""

    def __call__(self, make: Callable[[asyncio.Transport], P]) -> P:
        """Hand the transport to the protocol that ``make`` returns; it is connected here, and fed what is left over.

        Raises ClientDisconnected (an OSError, as send does) when the connection is not open; ``make`` is not called.
        """


class MessageLimit(Protocol):
    """The second extension."""

    def __call__(self, size_bytes: int) -> None:
        """Refuse messages longer than this from the next frame on, with 1009; ``ws_max_size`` holds until then."""


class Ping(Protocol):
    """The third extension."""

    async def __call__(self, payload: bytes) -> None:
        """Ping with ``payload`` (at most 125 bytes, not in use by another call); returns at the pong that carries it.

        A pong behind a message is seen once the endpoint has received that. There is no timeout, and none at the end of
        the connection. Raises ClientDisconnected when it is not open at the call.
        """


class TakeoverHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, but what follows an upgrade request in its segment reaches the WebSocket protocol."""

    _segment = b""

    def data_received(self, data: bytes) -> None:
        """Parse a segment."""
        self._segment = data
        super().data_received(data)
        self._segment = b""

    def handle_websocket_upgrade(self) -> None:
        """Switch to the WebSocket protocol. Called while the parser's exception, which names the border, is handled."""
        upgrade = sys.exception()
        assert isinstance(upgrade, HttpParserUpgrade)
        super().handle_websocket_upgrade()
        following = self._segment[upgrade.args[0] :]
        if following:
            protocol = self.transport.get_protocol()
            assert isinstance(protocol, asyncio.Protocol)
            protocol.data_received(following)


class TakeoverWebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol, which can let go of its transport.

    A peer that does not read what we write is not read: each of its pings would be answered into memory. When the endpoint
    has ended it gets ``linger`` seconds to take what is written.
    """

    def __init__(self, linger: float, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._linger = linger
        self._expiry: asyncio.TimerHandle | None = None
        self._unread = bytearray()  # not parsed yet
        self._offered = bytearray()  # parsed, but the endpoint has not received the message
        self._pings: dict[bytes, asyncio.Future[None]] = {}

    def handle_connect(self, event: Request) -> None:
        """Start the endpoint with the extensions in its scope; nothing more is read until it accepts."""
        super().handle_connect(event)
        if self.response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            extensions = cast(dict[str, Any], self.scope["extensions"])
            extensions[TAKEOVER] = self._take_over
            extensions[MESSAGE_LIMIT] = self._limit_messages
            extensions[PING] = self._ping
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Keep frames until they are wanted; the upgrade request passes."""
        if not self.handshake_initiated:
            super().data_received(data)
            return
        self._unread += data
        self._parse()

    async def receive(self) -> ASGIReceiveEvent:
        """The next message of the peer."""
        self._parse()
        message = await super().receive()
        if message["type"] == "websocket.receive":
            self._offered.clear()
        return message

    async def send(self, message: ASGISendEvent) -> None:
        """Send, accept or close."""
        await super().send(message)
        if message["type"] == "websocket.accept":
            self.transport.resume_reading()
        self._parse()

    def pause_writing(self) -> None:
        """The peer takes nothing for now."""
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()
        self._parse()

    async def run_asgi(self) -> None:
        """Run the endpoint; what it leaves open ends by itself."""
        await super().run_asgi()
        self._expiry = self.loop.call_later(self._linger, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self._expiry is not None:
            self._expiry.cancel()
        super().connection_lost(exc)

    def handle_pong(self, event: Frame) -> None:
        """An answer; one that nobody waits for is uvicorn's."""
        waiting = self._pings.get(bytes(event.data))
        if waiting is None:
            super().handle_pong(event)
        elif not waiting.done():
            waiting.set_result(None)

    async def _ping(self, payload: bytes) -> None:
        """See :class:`Ping`."""
        self._assert_open()
        self._pings[payload] = self.loop.create_future()
        try:
            self.conn.send_ping(payload)
            self.transport.write(b"".join(self.conn.data_to_send()))
            await self._pings[payload]
        finally:
            del self._pings[payload]

    def _limit_messages(self, size_bytes: int) -> None:
        """See :class:`MessageLimit`."""
        self.conn.max_message_size = size_bytes

    def _parse(self) -> None:
        """Feed uvicorn frame by frame until it has a message that the endpoint has not received."""
        limit = self.conn.max_message_size
        assert limit is not None
        while self.handshake_complete and self._wants_more():
            size = _frame_size(self._unread)
            if size > limit + LONGEST_HEADER:
                size = len(self._unread)  # it is refused by its header, there is no need to wait for the rest
            if not size or size > len(self._unread):
                break
            frame = bytes(self._unread[:size])
            del self._unread[:size]
            super().data_received(frame)
            if frame[0] & 0x8 or self.close_sent:
                continue  # answered, or not wanted any more
            self._offered += frame
            if len(self._offered) > 2 * limit + LONGEST_HEADER:  # headers without end, which add nothing to a message
                self.conn.fail(CloseCode.TOO_LARGE)
                self.handle_parser_exception()

    def _wants_more(self) -> bool:
        return not self.read_paused and self.writable.is_set() and not self.transport.is_closing()

    def _assert_open(self) -> None:
        if not self.handshake_complete or self.close_sent or self.transport.is_closing():
            raise ClientDisconnected

    def _take_over(self, make: Callable[[asyncio.Transport], P]) -> P:
        """See :class:`Takeover`."""
        transport = self.transport
        self._assert_open()
        protocol = make(transport)
        left_over = bytes(self._offered + self._unread)

        self.stop_keepalive()
        self.connections.discard(self)
        self.transport = _Released()
        self.disconnected = True
        self.read_paused = False
        self.queue = asyncio.Queue()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1005})

        # uvloop chooses how to read when reading starts. It must be started here in any case: uvicorn may have paused
        # it for a message that nobody is going to receive.
        transport.pause_reading()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if not self.writable.is_set():
            protocol.pause_writing()
        transport.resume_reading()
        if left_over:
            protocol.data_received(left_over)
        return protocol


class _Released(asyncio.Transport):
    """What uvicorn's protocol holds afterwards: a transport that is closed, for its run ends with closing it."""

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


def _frame_size(data: bytearray) -> int:
    """The size of the frame at the start of ``data`` (RFC 6455, 5.2), 0 while its length is not there."""
    if len(data) < 2:
        return 0
    masked, length = divmod(data[1], 0x80)
    extra = {126: 2, 127: 8}.get(length, 0)
    if len(data) < 2 + extra:
        return 0
    if extra:
        length = int.from_bytes(data[2 : 2 + extra], "big")
    return 2 + extra + 4 * masked + length
