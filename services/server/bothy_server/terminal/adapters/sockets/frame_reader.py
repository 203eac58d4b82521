"""One direction of a WebSocket connection, read without assembling messages (RFC 6455, server side).

The reader gets bytes as they arrive. Frames that pass come out unmasked, header first, payload as it is there; all
else comes out as an event. What may pass is a *treatment* for binary and for text messages, so that the owner's state
is two words here. Nothing is kept but a header in pieces, a control frame's payload and one text message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from bothy_server.terminal.adapters.sockets.websocket_frames import (
    CONTROL_BIT,
    CONTROL_BYTES,
    FIN,
    FINAL_CONTINUATION,
    MASKED,
    RESERVED,
    Opcode,
    close_code,
    header,
    unmask,
)
from bothy_wire.close_codes import CloseCode


class Treatment(Enum):
    """What becomes of the messages of one kind."""

    REFUSE = auto()  # a violation, at the header
    DROP = auto()  # read past
    PASS = auto()  # into ``out``, frame by frame
    KEEP = auto()  # assembled, one message; after it both kinds are refused


@dataclass(frozen=True, slots=True)
class Ping:
    """The peer wants a pong with this payload."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Text:
    """The message that was kept. It is not checked for UTF-8; its codec is."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """The peer's close frame. Nothing is read after it."""

    code: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Broken:
    """The peer broke the protocol. Nothing is read after it, for the border of the next frame is not known."""

    code: CloseCode
    reason: str


Event: TypeAlias = Ping | Text | Closed | Broken

WHOLE_BINARY = FIN | Opcode.BINARY
SMALL_HEADERS = tuple(header(WHOLE_BINARY, length) for length in range(CONTROL_BYTES + 1))


class FrameReader:
    """Reads one peer's frames. ``max_binary_bytes`` and ``max_text_bytes`` bound a message across its fragments."""

    __slots__ = (
        "_binary",
        "_control",
        "_ended",
        "_frame_mark",
        "_head",
        "_left",
        "_mask",
        "_max_binary_bytes",
        "_max_small_bytes",
        "_max_text_bytes",
        "_message",
        "_message_mark",
        "_opcode",
        "_open",
        "_size",
        "_text",
        "_text_message",
        "passed_bytes",
        "passed_frames",
    )

    def __init__(self, max_binary_bytes: int, max_text_bytes: int) -> None:
        self.passed_bytes = 0
        self.passed_frames = 0
        self._max_binary_bytes = max_binary_bytes
        self._max_text_bytes = max_text_bytes
        self._max_small_bytes = min(CONTROL_BYTES, max_binary_bytes)
        self._binary = Treatment.REFUSE
        self._text = Treatment.REFUSE
        self._ended = False
        self._head = b""  # a header in pieces
        # The current frame; between frames nothing is left of it.
        self._opcode = 0
        self._left = 0
        self._mask = b""
        self._control = b""
        # The current data message: it may be open while control frames pass in between.
        self._message = Treatment.DROP
        self._open = False
        self._size = 0
        self._text_message = bytearray()
        # Where the last borders were in the ``out`` of the last feed, or None.
        self._frame_mark: int | None = None
        self._message_mark: int | None = None

    def treat(self, binary: Treatment, text: Treatment) -> None:
        """Treat messages this way from the next one on. A message that is passing goes on until :meth:`cut`."""
        self._binary = binary
        self._text = text

    def cut(self) -> bytes:
        """Stop passing the current message. Returns what completes it where it went: zero bytes, and an end."""
        filling = bytes(self._left) if self.mid_frame else b""
        if self._message is Treatment.PASS:
            if self._open:
                filling += FINAL_CONTINUATION
            self._message = Treatment.DROP
        return filling

    @property
    def mid_frame(self) -> bool:
        """Whether a part of a passing frame is still to come."""
        return self._left > 0 and self._message is Treatment.PASS and not self._opcode & CONTROL_BIT

    @property
    def mid_message(self) -> bool:
        """Whether a part of a passing message is still to come."""
        return self.mid_frame or (self._open and self._message is Treatment.PASS)

    def frame_border(self, out: Sequence[bytes]) -> int | None:
        """The last index in the ``out`` of the last feed where a control frame may stand."""
        return self._frame_mark if self.mid_frame else len(out)

    def message_border(self, out: Sequence[bytes]) -> int | None:
        """The last index in the ``out`` of the last feed where a text message may stand."""
        return self._message_mark if self.mid_message else len(out)

    def feed(self, data: bytes, out: list[bytes]) -> Sequence[Event]:
        """Read ``data``: append what passes to ``out``, return the rest. What passed came before the events."""
        events: list[Event] = []
        if self._head:
            data = self._head + data
            self._head = b""
        self._frame_mark = self._message_mark = None
        at = 0
        try:
            while not self._ended:
                if not self._left:
                    if self._binary is Treatment.PASS and not self._open:
                        at = self._pass_small_frames(data, at, out)
                    body = self._read_header(data, at, out)
                    if not body:
                        self._head = data[at:]
                        break
                    at = body
                if self._left:
                    at = self._read_payload(data, at, out)
                if self._left:
                    break
                self._end_frame(events)
        except _FrameError as error:
            self._ended = True
            events.append(Broken(error.code, error.reason))
        return events

    def _pass_small_frames(self, data: bytes, at: int, out: list[bytes]) -> int:
        """The fast path: whole unfragmented binary frames with a short length. Returns where it ended."""
        end = len(data)
        start = at
        frames = 0
        while end - at >= 6 and data[at] == WHOLE_BINARY:
            length = data[at + 1] - MASKED
            stop = at + 6 + length
            if not 0 <= length <= self._max_small_bytes or stop > end:
                break
            out.append(SMALL_HEADERS[length])
            out.append(unmask(data[at + 6 : stop], data[at + 2 : at + 6]))
            frames += 1
            at = stop
        self.passed_frames += frames
        self.passed_bytes += at - start - 6 * frames
        return at

    def _read_header(self, data: bytes, at: int, out: list[bytes]) -> int:
        """Check the header at ``at`` as far as it is there. Returns where its payload starts, 0 while it is not whole.

        Nothing changes before the header is whole, so it may be read again.
        """
        there = len(data) - at
        if there < 2:
            return 0
        first, second = data[at], data[at + 1]
        opcode = first & 0x0F
        if first & RESERVED:
            raise _FrameError("reserved bits are set")
        if not second & MASKED:
            raise _FrameError("a frame is not masked")
        message = self._message
        match opcode:
            case Opcode.CONTINUATION if not self._open:
                raise _FrameError("a continuation of nothing")
            case Opcode.TEXT | Opcode.BINARY if self._open:
                raise _FrameError("a message inside a message")
            case Opcode.CONTINUATION:
                pass
            case Opcode.TEXT:
                message = self._text
            case Opcode.BINARY:
                message = self._binary
            case Opcode.CLOSE | Opcode.PING | Opcode.PONG:
                if not first & FIN or second & 0x7F > CONTROL_BYTES:
                    raise _FrameError("a control frame is fragmented or too long")
            case _:
                raise _FrameError("unknown opcode")
        if message is Treatment.REFUSE:
            raise _FrameError("this kind of message is not expected now")

        length = second & 0x7F
        extra = {126: 2, 127: 8}.get(length, 0)
        if there < 2 + extra:
            return 0
        if extra:
            length = int.from_bytes(data[at + 2 : at + 2 + extra], "big")
            if length >> 63:
                raise _FrameError("a length with its top bit set")
        if not opcode & CONTROL_BIT:
            size = length if opcode else self._size + length
            if size > (self._max_text_bytes if message is Treatment.KEEP else self._max_binary_bytes):
                raise _FrameError("a message is too large", CloseCode.TOO_LARGE)
        else:
            size = self._size
        body = at + 6 + extra
        if body > len(data):
            return 0

        self._opcode = opcode
        self._left = length
        self._mask = data[body - 4 : body]
        self._size = size
        if opcode & CONTROL_BIT:
            return body
        self._message = message
        self._open = not first & FIN
        if message is Treatment.PASS:
            self._frame_mark = len(out)
            if opcode:
                self._message_mark = len(out)
            out.append(header(first, length))
            self.passed_frames += 1
        return body

    def _read_payload(self, data: bytes, at: int, out: list[bytes]) -> int:
        """Take as much of the current frame's payload as is there. Returns where it ended."""
        stop = min(at + self._left, len(data))
        taken = stop - at
        self._left -= taken
        control = self._opcode & CONTROL_BIT
        if control or self._message is not Treatment.DROP:
            payload = unmask(data[at:stop], self._mask)
            turn = taken & 3
            if turn:
                self._mask = self._mask[turn:] + self._mask[:turn]
            if control:
                self._control += payload
            elif self._message is Treatment.PASS:
                out.append(payload)
                self.passed_bytes += taken
            else:
                self._text_message += payload
        return stop

    def _end_frame(self, events: list[Event]) -> None:
        """Report what the frame that just ended completes."""
        control, self._control = self._control, b""
        match self._opcode:
            case Opcode.PING:
                events.append(Ping(control))
            case Opcode.CLOSE:
                try:
                    events.append(Closed(close_code(control), control))
                except ValueError as error:
                    raise _FrameError("a close frame is not valid") from error
                self._ended = True
            case Opcode.PONG:
                pass
            case _ if self._message is Treatment.KEEP and not self._open:
                events.append(Text(bytes(self._text_message)))
                self._text_message.clear()
                self.treat(Treatment.REFUSE, Treatment.REFUSE)


class _FrameError(Exception):
    """Ends reading; becomes :class:`Broken`."""

    def __init__(self, reason: str, code: CloseCode = CloseCode.PROTOCOL_VIOLATION) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
