"""One session as a person at a terminal lives it: what happened in, what to do out. No I/O, no clock.

``handle(event, now)`` returns effects in order; ``take_outgoing()`` what there is to send; ``deadline()`` says when to call
again with :class:`Tick`. The encrypted channel (:class:`~bothy_wire.channel.device_end.DeviceEnd`) is inside; the socket and the terminal are outside
(``terminal.py``). The rules are those of ``docs/spec/protocol.md``: both sides, flow control, end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never
from uuid import UUID

from bothy_device import texts
from bothy_device.display import Display
from bothy_device.escapes import Command, EscapeParser
from bothy_device.events import (
    Accepted,
    Attached,
    Begin,
    Bell,
    Closed,
    Effect,
    Event,
    HangUp,
    Leave,
    Quit,
    Received,
    Refused,
    Resized,
    Say,
    Suspend,
    Tick,
    Typed,
    Unreached,
    Woke,
    Written,
)
from bothy_device.keeping import Keeping
from bothy_device.outage import Choice, Kept
from bothy_device.reconnect import Declined
from bothy_device.waiting import WAITING_AFTER, Limits, Waiting
from bothy_device.way import Happening, Way
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
from bothy_wire.printable import printable


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
        way: Way,
        greeting: str | None = None,
    ) -> None:
        """``escape`` is the escape byte, empty for none; ``None`` where no person types but a pipe delivers.

        ``greeting`` was said before and is said again behind the first repaint, which begins by clearing the screen.
        """
        self._end = end
        self._id = session_id
        self._host = printable(host_name)
        self._fail_grace = limits.fail_grace
        self._input_buffer_bytes = limits.input_buffer_bytes
        self._greeting = greeting
        self._piped = escape is None
        self._escape = (escape or b"").decode()
        self._parser = EscapeParser(escape or b"")
        self._keeping = Keeping()
        self._size = self._told = _clamped(size)
        self._begun = False
        self._help_pings = False
        self._paired = False
        self._ready_due = False
        self._failed_at: float | None = None
        self._way = way
        self._display = Display()
        self._waiting = Waiting(limits, piped=self._piped, escape=self._escape, now=now)
        self._patience_at: float | None = now + WAITING_AFTER
        self._exit: Leave | None = None
        """How it ends once the terminal took what is still with it."""
        self._leave: Leave | None = None
        self._look_at: float | None = None
        self._effects: list[Effect] = []

    def handle(self, event: Event, now: float) -> list[Effect]:
        """One event; the effects in order."""
        if self._leave:
            return []
        self._effects = []
        self._step(event, now)
        if self._exit and not self._display.busy:
            self._leave = self._leave or self._exit
        if self._leave is None:
            self._watch(now)
        if self._leave:
            self._leave = self._with_lost_keys(self._leave)
            self._effects.append(self._leave)
        return self._effects

    def take_outgoing(self) -> list[Frame | bytes]:
        """What to send now, in order; to be asked again when the connection took it, and after every event."""
        frames: list[Frame | bytes] = [SideReady()] if self._ready_due else []
        self._ready_due = False
        return frames + self._end.take_outgoing()

    def deadline(self) -> float | None:
        """When :class:`Tick` is due."""
        times = [self._end.deadline(), self._waiting.deadline(), self._patience_at, self._look_at]
        if self._failed_at is not None:
            times.append(self._failed_at + self._fail_grace)
        return min((each for each in times if each is not None), default=None)

    # ---- events ---------------------------------------------------------------------------------------------------

    def _step(self, event: Event, now: float) -> None:
        match event:
            case Received(item):
                if self._exit is None and self._way.up:  # else the connection is an abandoned one
                    self._received(item, now)
            case Accepted() | Attached():
                self._effects += self._way.handle(event, now)
            case Closed() | Unreached() | Refused() | Woke():
                self._lost(event, now)
            case Typed(data):
                self._typed(data, now)
            case Resized():
                self._size = _clamped(event)
                self._tell_size()
            case Written(count):
                if processed := self._display.written(count):
                    self._end.processed(processed)
                self._acknowledge_exit()
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
                self._end.unpaired()
                self._ready_due = True
                self._way.host_gone(now)
            case _:
                self._fail(CloseCode.PROTOCOL_VIOLATION, now)

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
            self._channel_event(each, now)

    def _channel_event(self, event: DeviceEvent, now: float) -> None:
        match event:
            case Opened():
                self._display.opened(exact=event.resume == "exact")
                self._opened(event.dropped_input, now)
            case Refusal(code):
                self._hang_up(CloseCode.NORMAL, Declined(code), now)
            case Output(data):
                self._effects += self._display.output(data)
            case Repaint(data, last):
                self._effects += self._display.repaint(data, last=last)
                if last and data and self._greeting:
                    self._effects.append(Say(self._greeting))
                if last:
                    self._greeting = None
                    self._effects += self._waiting.again()
            case Exited(status):
                self._exit = Leave(status)
                self._acknowledge_exit()
            case Notice(text):
                self._effects.append(Say(printable(text)))
            case Pong(round_trip) if self._help_pings:
                self._help_pings = False
                self._effects.append(Say(f"round trip {round_trip * 1000:.0f} ms"))
            case InputAcknowledged() | Pong():
                pass
            case _:
                assert_never(event)

    def _opened(self, dropped: int, now: float) -> None:
        self._way.reached(now)
        if not self._begun:
            self._begun = True
            self._effects.append(Begin())
        self._patience_at = None
        self._tell_size()
        if dropped:
            self._effects.append(Say(f"{dropped} bytes that you typed were not sent: another device typed meanwhile"))

    def _acknowledge_exit(self) -> None:
        """The exit counts as one position, behind all output."""
        if self._exit and not self._display.busy and self._end.open:
            self._end.processed(1)

    def _typed(self, data: bytes, now: float) -> None:
        for part in self._parser.feed(data):
            match part:
                case Command.LEAVE:
                    self._leave = self._exit or Leave(0, self._goes_on("left"))
                    return
                case Command.DROP:
                    self._effects.append(Say(f"{self._end.drop_unsent()} bytes dropped"))
                case Command.HELP:
                    self._effects.append(Say(texts.help_for(self._id, self._host, self._escape)))
                    self._help_pings = True
                    self._end.ping(now)
                case Command.SUSPEND:
                    self._effects.append(Suspend())
                case _ if self._exit is None:
                    self._press(part.data, now)
                    if self._leave:
                        return

    def _press(self, keys: bytes, now: float) -> None:
        if self._end.open:
            return self._type(keys)
        match self._way.choice(keys, self._kept(), now):
            case Choice.KEEP:
                self._type(keys)
            case Choice.TRY:
                self._effects += self._way.try_now(now)
            case Choice.KEEP_AND_TRY:
                self._type(keys)
                self._effects += self._way.try_now(now)
            case Choice.DROP:
                self._end.drop_unsent()
            case Choice.GIVE_UP:
                self._leave = self._way.give_up()
            case Choice.REFUSE:
                self._effects.append(Bell())
        return None

    def _type(self, keys: bytes) -> None:
        kept = self._end.open or self._piped
        room = None if kept else self._input_buffer_bytes - self._end.pending_input
        keys, dropped = self._keeping.admit(keys, pasting=self._parser.pasting, room=room)
        if dropped:
            self._effects.append(Bell())
        if keys:
            self._end.write(keys)

    def _tell_size(self) -> None:
        if self._end.open and self._size != self._told:
            self._told = self._size
            self._end.resize(self._size.columns, self._size.rows)

    def _tick(self, now: float) -> None:
        handshake = self._end.deadline()
        if handshake is not None and now >= handshake:
            return self._fail(CloseCode.CHANNEL_FAILED, now)
        if self._failed_at is not None and now >= self._failed_at + self._fail_grace:
            return self._fail(CloseCode.CHANNEL_FAILED, now)
        self._effects += self._way.pass_time(now)
        self._exit = self._exit or self._way.end
        if self._patience_at is not None and now >= self._patience_at:
            self._patience_at = None
            self._effects.append(Say(f"waiting for {self._host}; Ctrl-C gives up"))
        if self._waiting.ping_due(now):
            self._end.ping(now)
        return None

    def _watch(self, now: float) -> None:
        pending, connected = self._end.pending_input, self._end.open
        line = self._way.line(self._kept(), now)
        self._effects += self._waiting.watch(pending, connected=connected, outage=line, now=now)
        self._look_at = self._way.deadline(now)

    def _kept(self) -> Kept:
        return Kept(self._end.pending_input, self._end.unsent_input)

    # ---- ends -------------------------------------------------------------------------------------------------------

    def _lost(self, event: Happening, now: float) -> None:
        """The connection, or the attempt to make one, is gone."""
        self._end.unpaired()
        self._paired = self._ready_due = False
        self._failed_at = None
        if self._exit is None:
            self._effects += self._way.handle(event, now)
            self._exit = self._way.end

    def _fail(self, code: CloseCode, now: float) -> None:
        self._hang_up(code, Closed(code, ""), now)

    def _hang_up(self, code: CloseCode, why: Happening, now: float) -> None:
        """We leave this connection: the relay hears ``code``, and the way goes on as after ``why``."""
        self._lost(why, now)
        if self._exit is not None:
            self._leave = replace(self._exit, close=code)
        else:
            self._effects.append(HangUp(code))

    def _goes_on(self, text: str) -> str:
        return texts.goes_on(text, self._id) if self._begun and self._exit is None else text

    def _with_lost_keys(self, leave: Leave) -> Leave:
        """Keys that are not known to be with the host do not vanish in silence."""
        count = self._end.pending_input
        if not leave.message or not count or self._end.open or not self._begun:
            return leave
        return replace(leave, message=f"{leave.message} (the last {texts.keys(count)} may not have arrived)")


def _clamped(size: Resized) -> Resized:
    """What the protocol allows; a terminal that says 0 does not know its size."""
    columns, rows = size.columns or 80, size.rows or 24
    return Resized(min(max(columns, SIZE_MIN), SIZE_MAX), min(max(rows, SIZE_MIN), SIZE_MAX))
