"""One session as a person at a terminal lives it: what happened in, what to do out. No I/O, no clock.

``handle(event, now)`` returns effects in order; ``deadline()`` says when to call again with :class:`Tick`. The encrypted
channel (:class:`~bothy_wire.channel.device_end.DeviceEnd`) is inside; the socket and the terminal are outside
(``terminal.py``). The rules are those of ``docs/spec/protocol.md``: both sides, flow control, end.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import assert_never
from uuid import UUID

from bothy_device import texts
from bothy_device.escapes import Command, EscapeParser
from bothy_wire.channel.device_end import (
    DeviceEnd,
    DeviceEvent,
    Exited,
    InputAcknowledged,
    Notice,
    Opened,
    Output,
    Pong,
    Refusal,
    Repaint,
)
from bothy_wire.close_codes import CloseCode
from bothy_wire.errors import ChannelError
from bothy_wire.frames import Frame, SidePaired, SideReady, SideUnpaired
from bothy_wire.limits import SIZE_MAX, SIZE_MIN

WAITING_AFTER = 2.0
"""Seconds after which waiting input, or a host that does not answer, is told to the person."""
PING_AFTER = 1.0
"""Seconds after which input without an acknowledgement is followed by a PING."""
STATUS_EVERY = 1.0
"""Seconds between two status lines that differ in a number only."""


# ---- what happened ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Received:
    """A text frame or a binary message of the relay."""

    item: Frame | bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """The stream connection is gone."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Typed:
    """Bytes from the keyboard or the pipe in its place."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    """The terminal's size; the first one is given at the start."""

    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Written:
    """The terminal took that many of the bytes of :class:`Show`."""

    count: int


@dataclass(frozen=True, slots=True)
class Quit:
    """This program must go: a signal, or the terminal or the pipe behind it is gone."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    """The deadline has come."""


Event = Received | Closed | Typed | Resized | Written | Quit | Tick


# ---- what to do ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """To the relay, in order."""

    item: Frame | bytes


@dataclass(frozen=True, slots=True)
class Begin:
    """The terminal is reached: from now on keys belong to the remote side."""


@dataclass(frozen=True, slots=True)
class Show:
    """Remote output for the terminal, answered by :class:`Written`."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Say:
    """Lines for the person."""

    text: str


@dataclass(frozen=True, slots=True)
class Status:
    """The status line; ``None`` takes it away."""

    text: str | None


@dataclass(frozen=True, slots=True)
class Bell:
    """Keys were dropped."""


@dataclass(frozen=True, slots=True)
class Read:
    """Read the keyboard, or leave the rest where it is."""

    on: bool


@dataclass(frozen=True, slots=True)
class Suspend:
    """Stop this program, as ^Z would."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The end. ``close`` is the code for the relay; ``message`` is for the person; ``reason`` the close_reason of 4100."""

    status: int
    message: str | None = None
    close: int = CloseCode.NORMAL
    reason: str | None = None


Effect = Send | Begin | Show | Say | Status | Bell | Read | Suspend | Leave


@dataclass(frozen=True, slots=True)
class Limits:
    """See ``settings.py``: ``device.paste_bytes``, ``device.input_buffer_bytes``, ``channel.fail_grace``."""

    paste_bytes: int
    input_buffer_bytes: int
    fail_grace: float


class Session:
    """The machine. After a :class:`Leave` it does nothing more."""

    def __init__(
        self,
        end: DeviceEnd,
        *,
        session_id: UUID,
        host_name: str,
        escape: bytes | None,
        size: Resized,
        limits: Limits,
        now: float,
        greeting: str | None = None,
    ) -> None:
        """``escape`` is the escape byte, empty for none; ``None`` where no person types but a pipe delivers.

        ``greeting`` was said before and is said again behind the first repaint, which begins by clearing the screen.
        """
        self._end = end
        self._id = session_id
        self._host = texts.clean(host_name)
        self._limits = limits
        self._greeting = greeting
        self._piped = escape is None
        self._escape = (escape or b"").decode()
        self._parser = EscapeParser(escape or b"")
        self._size = self._told = _clamped(size)
        self._begun = False
        self._paired = False
        self._failed_at: float | None = None
        self._interrupted = False
        self._reading = True
        self._unwritten: deque[tuple[int, bool]] = deque()
        """Lengths of what is with the terminal, and whether they count as output."""
        self._waiting_since: float | None = None
        self._ping_at: float | None = None
        self._patience_at: float | None = now + WAITING_AFTER
        self._status: tuple[str, str] | None = None
        self._status_next = now
        self._status_at: float | None = None
        self._exit: Leave | None = None
        """How it ends once the terminal took what is still with it."""
        self._leave: Leave | None = None
        self._effects: list[Effect] = []

    def handle(self, event: Event, now: float) -> list[Effect]:
        """One event; the effects in order."""
        if self._leave:
            return []
        self._effects = []
        self._step(event, now)
        if self._exit and not self._unwritten:
            self._leave = self._leave or self._exit
        if self._leave is None:
            self._watch_input(now)
        self._effects += [Send(message) for message in self._end.take_outgoing()]
        if self._leave:
            self._effects.append(self._leave)
        return self._effects

    def deadline(self) -> float | None:
        """When :class:`Tick` is due."""
        times = [self._end.deadline(), self._ping_at, self._status_at, self._patience_at]
        if self._failed_at is not None:
            times.append(self._failed_at + self._limits.fail_grace)
        return min((each for each in times if each is not None), default=None)

    # ---- events ---------------------------------------------------------------------------------------------------

    def _step(self, event: Event, now: float) -> None:
        match event:
            case Received(item):
                if self._exit is None:
                    self._received(item, now)
            case Closed(code, reason):
                self._end.unpaired()
                message = texts.lost(code, reason, self._id, opened=self._end.opened_once)
                ended = reason if code == CloseCode.SESSION_ENDED else None
                self._exit = self._exit or Leave(255, message, reason=ended)
            case Typed(data):
                self._typed(data)
            case Resized():
                self._size = _clamped(event)
                self._tell_size()
            case Written(count):
                self._written(count)
            case Quit(status, text):
                self._leave = Leave(status, self._goes_on(text))
            case Tick():
                self._tick(now)
            case _:
                assert_never(event)

    def _received(self, item: Frame | bytes, now: float) -> None:
        match item:
            case bytes() if self._paired:
                if self._failed_at is None:
                    self._message(item, now)
            case SidePaired(session_token=str() as token) if not self._paired:
                self._paired = True
                self._pair(token, now)
            case SideUnpaired() if self._paired:
                self._paired = False
                self._failed_at = None
                self._interrupted = self._end.opened_once
                self._end.unpaired()
                self._effects.append(Send(SideReady()))
            case _:
                self._fail(CloseCode.PROTOCOL_VIOLATION)

    def _pair(self, token: str, now: float) -> None:
        self._told = self._size
        try:
            self._end.pair(token, self._size.columns, self._size.rows, now)
        except ChannelError:
            self._failed_at = now

    def _message(self, message: bytes, now: float) -> None:
        try:
            events = self._end.receive(message, now)
        except ChannelError:
            self._failed_at = now
            return
        for each in events:
            self._channel_event(each)

    def _channel_event(self, event: DeviceEvent) -> None:
        match event:
            case Opened():
                self._opened(event.dropped_input)
            case Refusal(code):
                self._leave = Leave(255, texts.refusal(code))
            case Output(data):
                self._show(data, counts=True)
            case Repaint(data, last):
                self._show(data, counts=False)
                if last and data and self._greeting:
                    self._effects.append(Say(self._greeting))
                if last:
                    self._greeting = None
            case Exited(status):
                self._exit = Leave(status)
                self._acknowledge_exit()
            case Notice(text):
                self._effects.append(Say(texts.clean(text)))
            case InputAcknowledged() | Pong():
                pass
            case _:
                assert_never(event)

    def _opened(self, dropped: int) -> None:
        if not self._begun:
            self._begun = True
            self._effects.append(Begin())
        self._patience_at = None
        self._interrupted = False
        self._tell_size()
        if dropped:
            self._effects.append(Say(f"{dropped} bytes that you typed were not sent: another device typed meanwhile"))

    def _show(self, data: bytes, *, counts: bool) -> None:
        if data:
            self._unwritten.append((len(data), counts))
            self._effects.append(Show(data))

    def _written(self, count: int) -> None:
        processed = 0
        while count and self._unwritten:
            length, counts = self._unwritten.popleft()
            taken = min(count, length)
            count -= taken
            processed += taken if counts else 0
            if taken < length:
                self._unwritten.appendleft((length - taken, counts))
        if processed:
            self._end.processed(processed)
        self._acknowledge_exit()

    def _acknowledge_exit(self) -> None:
        """The exit counts as one position, behind all output."""
        if self._exit and not self._unwritten and self._end.open:
            self._end.processed(1)

    def _typed(self, data: bytes) -> None:
        for part in self._parser.feed(data):
            match part:
                case Command.LEAVE:
                    self._leave = self._exit or Leave(0, self._goes_on("left"))
                    return
                case Command.DROP:
                    self._effects.append(Say(f"{self._end.drop_unsent()} bytes dropped"))
                case Command.HELP:
                    self._effects.append(Say(self._help()))
                case Command.SUSPEND:
                    self._effects.append(Suspend())
                case _ if self._exit is None:
                    self._type(part.data)

    def _type(self, keys: bytes) -> None:
        if not self._end.open and not self._piped:
            room = max(0, self._limits.input_buffer_bytes - self._end.pending_input)
            if room < len(keys):
                self._effects.append(Bell())
            keys = keys[:room]
        if keys:
            self._end.write(keys)

    def _tell_size(self) -> None:
        if self._end.open and self._size != self._told:
            self._told = self._size
            self._end.resize(self._size.columns, self._size.rows)

    def _tick(self, now: float) -> None:
        handshake = self._end.deadline()
        if handshake is not None and now >= handshake:
            return self._fail(CloseCode.CHANNEL_FAILED)
        if self._failed_at is not None and now >= self._failed_at + self._limits.fail_grace:
            return self._fail(CloseCode.CHANNEL_FAILED)
        if self._patience_at is not None and now >= self._patience_at:
            self._patience_at = None
            self._effects.append(Say(f"waiting for {self._host}; Ctrl-C gives up"))
        if self._ping_at is not None and now >= self._ping_at:
            self._ping_at = None
            self._end.ping(now)
        return None

    # ---- input that waits, and the status line ----------------------------------------------------------------------

    def _watch_input(self, now: float) -> None:
        pending = self._end.pending_input
        if not pending or not self._end.open:
            self._waiting_since = self._ping_at = None
        elif self._waiting_since is None:
            self._waiting_since = now
            self._ping_at = now + PING_AFTER
        self._gate_keyboard(pending)
        self._update_status(self._status_line(pending, now), now)

    def _update_status(self, status: tuple[str, str] | None, now: float) -> None:
        """A new kind of status is shown at once, new numbers now and then."""
        kind_stays = status and self._status and status[0] == self._status[0]
        if status == self._status:
            waits = status is None and self._waiting_since is not None and not self._piped
            self._status_at = self._waiting_since + WAITING_AFTER if waits and self._waiting_since is not None else None
        elif kind_stays and now < self._status_next:
            self._status_at = self._status_next
        else:
            self._status, self._status_next, self._status_at = status, now + STATUS_EVERY, None
            self._effects.append(Status(status[1] if status else None))

    def _gate_keyboard(self, pending: int) -> None:
        """A person's keys are always read, so that escapes work, except behind a paste that is too large."""
        limit = self._limits.paste_bytes if self._end.open else self._limits.input_buffer_bytes
        if not self._end.open and not self._piped:
            reading = True
        elif self._reading:
            reading = pending < limit
        else:
            reading = pending <= limit * 0.9
        if reading is not self._reading:
            self._reading = reading
            self._effects.append(Read(reading))

    def _status_line(self, pending: int, now: float) -> tuple[str, str] | None:
        """Its kind and its words."""
        if self._interrupted:
            typed = f", {pending} bytes typed are kept" if pending else ""
            return "interrupted", f"the host's connection is interrupted; waiting{typed}{self._hint('.', ' leaves')}"
        if self._piped or self._waiting_since is None or now < self._waiting_since + WAITING_AFTER:
            return None
        if not self._reading:
            return "full", f"{pending} bytes waiting; keys are read again when a tenth is through"
        return "waiting", f"{pending} bytes waiting{self._hint('D', ' drops them')}"

    def _hint(self, key: str, meaning: str) -> str:
        return f", {self._escape}{key}{meaning}" if self._escape else ""

    def _help(self) -> str:
        trip = self._end.round_trip
        return "\n".join(
            (
                f"session {self._id} on {self._host}"
                + (f", round trip {trip * 1000:.0f} ms" if trip is not None else ""),
                f" {self._escape}.   leave; the session goes on",
                f" {self._escape}D   drop what was typed and not sent yet",
                f" {self._escape}^Z  suspend bothy",
                f" {self._escape}?   this help",
                f" {self._escape}{self._escape}   send the escape character",
                "(at the start of a line only)",
            )
        )

    # ---- ends -------------------------------------------------------------------------------------------------------

    def _goes_on(self, text: str) -> str:
        return f"{text}; the session goes on: bothy attach {self._id}" if self._end.opened_once else text

    def _fail(self, code: CloseCode) -> None:
        self._leave = Leave(255, texts.lost(code, "", self._id, opened=self._end.opened_once), close=code)


def _clamped(size: Resized) -> Resized:
    """What the protocol allows; a terminal that says 0 does not know its size."""
    columns, rows = size.columns or 80, size.rows or 24
    return Resized(min(max(columns, SIZE_MIN), SIZE_MAX), min(max(rows, SIZE_MIN), SIZE_MAX))
