"""One side's connection after it left ASGI: a :class:`SideLink` that streams to its counterpart (docs/architecture.md).

What becomes of a peer's messages is one table, :data:`TREATMENTS`. Bytes are forwarded as they arrive; a message is
never put together here, and never left unfinished on a side that stays. Everything the owner hears comes in a later
turn of the loop, never from within its own call.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from enum import Enum, auto
from typing import cast

from bothy_server.kernel.clock import Clock, Timer
from bothy_server.terminal.adapters.sockets.frame_reader import (
    Broken,
    Closed,
    Event,
    FrameReader,
    Ping,
    Text,
    Treatment,
)
from bothy_server.terminal.adapters.sockets.frame_writer import FrameWriter
from bothy_server.terminal.adapters.sockets.liveness import Liveness, Verdict
from bothy_server.terminal.adapters.sockets.websocket_frames import Opcode, close_payload
from bothy_server.terminal.app.ports import SideEvents
from bothy_wire.close_codes import CloseCode


@dataclass(frozen=True, slots=True)
class ForwarderLimits:
    """Bounds in bytes and seconds; each is the configuration key of its name."""

    max_frame_bytes: int
    max_unidentified_frame_bytes: int
    buffer_high_bytes: int
    buffer_low_bytes: int
    socket_buffer_bytes: int | None  # None leaves it to the system
    stall_timeout: float
    close_linger: float
    ping_interval: float
    ping_timeout: float


class State(Enum):
    """Where a link is; see :data:`TREATMENTS`."""

    LONE = auto()
    PAIRED = auto()
    PARTED = auto()  # the counterpart went, and the owner has not said what follows
    UNPAIRED = auto()
    CLOSING = auto()
    GONE = auto()


# Binary messages, text messages.
TREATMENTS = {
    State.LONE: (Treatment.REFUSE, Treatment.REFUSE),
    State.PAIRED: (Treatment.PASS, Treatment.REFUSE),
    State.PARTED: (Treatment.DROP, Treatment.REFUSE),
    State.UNPAIRED: (Treatment.DROP, Treatment.KEEP),
    State.CLOSING: (Treatment.DROP, Treatment.DROP),
    State.GONE: (Treatment.DROP, Treatment.DROP),
}


class StreamForwarder(asyncio.Protocol):
    """A link over a transport that has accepted the WebSocket handshake. It starts lone."""

    def __init__(self, limits: ForwarderLimits, events: SideEvents, clock: Clock) -> None:
        self.reader = FrameReader(limits.max_frame_bytes, limits.max_unidentified_frame_bytes)
        self._limits = limits
        self._events = events
        self._clock = clock
        self._liveness = Liveness(limits.ping_interval, limits.ping_timeout, limits.stall_timeout)
        self._state = State.LONE
        self._counterpart: StreamForwarder | None = None
        self._reading = True
        self._code = int(CloseCode.ABNORMAL)
        self._told_gone = False
        self._linger: Timer | None = None

    # What the owner calls (SideLink).

    def send_text(self, text: str) -> None:
        """Send one text message at the next border between messages."""
        if not self.is_leaving:
            self.writer.send_text(text)

    def close(self, code: int, reason: str = "") -> None:
        """Complete the outgoing stream, then the close frame; the peer has ``close_linger`` to take it and to answer."""
        if not self.is_leaving:
            self._code = code
            self._finish(close_payload(code, reason))

    def abort(self) -> None:
        """Drop the connection now."""
        if self._state is not State.GONE:
            self.part()
            self._enter(State.CLOSING)
            self._transport.abort()

    def discard(self, on: bool) -> None:
        """Drop binary and take one text message, or be lone again."""
        if not self.is_leaving:
            self.part()
            self._enter(State.UNPAIRED if on else State.LONE)

    # What the pump and the counterpart call.

    @property
    def is_leaving(self) -> bool:
        """Whether the link carries nothing any more."""
        return self._state is State.CLOSING or self._state is State.GONE

    def follow(self, counterpart: StreamForwarder | None) -> None:
        """Exchange messages with ``counterpart``, which is told the same. None: it left before it could be joined."""
        self._counterpart = counterpart
        if counterpart is None:
            self._enter(State.PARTED)
            return
        self._enter(State.PAIRED)
        self.writer.follow(counterpart.reader)
        self.read(not counterpart.writer.paused)

    def part(self) -> None:
        """Stop exchanging, both ways; each outgoing stream is completed. Does nothing when there is no counterpart."""
        if self._counterpart is not None:
            self._counterpart.unfollow()
            self.unfollow()

    def unfollow(self) -> None:
        """This link's half of :meth:`part`."""
        self._counterpart = None
        self._enter(State.PARTED)
        self.writer.leave()
        self.read(True)

    def follows(self, other: StreamForwarder) -> bool:
        """Whether ``other`` is the counterpart now."""
        return self._counterpart is other

    def read(self, on: bool) -> None:
        """Read the peer, or let it wait while the counterpart takes nothing."""
        if on is not self._reading:
            self._reading = on
            if on:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    # What the heartbeat calls.

    def sweep(self, now: float) -> None:
        """Ping, give up, or tell the owner of a stall, as is due at steady instant ``now``."""
        if self.is_leaving:
            return
        verdict = self._liveness.judge(
            now,
            reading=self._reading,
            ping_waits=self.writer.is_waiting(Opcode.PING),
            stuck_bytes=self.writer.queued_bytes() if self.writer.paused else None,
        )
        match verdict:
            case Verdict.PING:
                self.writer.send_control(Opcode.PING, b"")
            case Verdict.STALLED:
                self._loop.call_soon(self._events.stalled, self)
            case Verdict.LOST:
                self.abort()
            case Verdict.NOTHING:
                pass

    @property
    def is_gone(self) -> bool:
        """Whether the connection has ended; nothing is counted any more."""
        return self._state is State.GONE

    @property
    def forwarded_bytes(self) -> int:
        """Payload bytes that passed from this side to its counterparts."""
        return self.reader.passed_bytes

    @property
    def forwarded_frames(self) -> int:
        """Frames that passed from this side to its counterparts."""
        return self.reader.passed_frames

    # What the transport calls (asyncio.Protocol).

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Continue on ``transport``, whatever is still in its write buffer."""
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)
        self.writer = FrameWriter(self._transport)
        if self._limits.socket_buffer_bytes is not None:
            connection: socket.socket = transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.socket_buffer_bytes)
        self._transport.set_write_buffer_limits(self._limits.buffer_high_bytes, self._limits.buffer_low_bytes)

    def data_received(self, data: bytes) -> None:
        """Forward what passes, then act on the rest: a close stands behind the data of the same read."""
        self._liveness.heard = True
        out: list[bytes] = []
        events = self.reader.feed(data, out)
        if out and self._counterpart is not None:
            self._counterpart.writer.forward(out)
        for event in events:
            self._act(event)

    def pause_writing(self) -> None:
        """The peer takes less than it is sent: let the counterpart wait."""
        self.writer.paused = True
        if self._counterpart is not None:
            self._counterpart.read(False)

    def resume_writing(self) -> None:
        """The peer took enough: go on."""
        self.writer.paused = False
        self._liveness.took = True
        self.writer.flush()
        if self._counterpart is not None:
            self._counterpart.read(True)

    def eof_received(self) -> None:
        """The peer sends nothing more. The transport closes itself when what is queued is written."""
        self._leave()
        self._tell_gone(self._code)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the code says enough
        """The connection ended, in whatever way."""
        self.part()
        self._enter(State.GONE)
        if self._linger is not None:
            self._linger.cancel()
        self._tell_gone(self._code)

    # Private.

    def _enter(self, state: State) -> None:
        self._state = state
        self.reader.treat(*TREATMENTS[state])

    def _act(self, event: Event) -> None:
        """Act on what the reader did not pass."""
        match event:
            case Closed() if self.is_leaving:
                self._transport.close()  # both have said goodbye; the server hangs up first (RFC 6455, 7.1.1)
            case _ if self.is_leaving:
                pass
            case Ping(payload):
                self.writer.send_control(Opcode.PONG, payload)
            case Text(payload):
                self._enter(State.LONE)
                self._loop.call_soon(self._events.text, self, payload)
            case Closed(code, payload):
                self._finish(payload)
                self._tell_gone(code)
                self._transport.close()
            case Broken(code, reason):
                self._finish(close_payload(code, reason))
                self._tell_gone(code)
                # The peer's answer cannot be read, its end of file can. To close with its bytes unread would reset the
                # connection, and the close frame would be lost with it.
                if self._transport.can_write_eof():
                    self._transport.write_eof()

    def _finish(self, payload: bytes) -> None:
        """Say goodbye with a close frame."""
        self.part()
        self.writer.finish(payload)
        self._leave()

    def _leave(self) -> None:
        """Carry nothing any more; what is queued has ``close_linger`` to be taken."""
        self.part()
        self._enter(State.CLOSING)
        if self._linger is None:
            at = self._clock.monotonic() + self._limits.close_linger
            self._linger = self._clock.call_at(at, self._transport.abort)

    def _tell_gone(self, code: int) -> None:
        if not self._told_gone:
            self._told_gone = True
            self._loop.call_soon(self._events.gone, self, code)
