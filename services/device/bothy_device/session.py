"""One session as a person at a terminal lives it: what happened in, what to do out. No I/O, no clock.

``handle(event, now)`` returns effects in order; ``take_outgoing()`` what there is to send; ``deadline()`` says when to call
again with :class:`Tick`. The encrypted channel (:class:`~bothy_wire.channel.device_end.DeviceEnd`) is inside; the socket and the terminal are outside
(``terminal.py``). The rules are those of ``docs/spec/protocol.md``: both sides, flow control, end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never
from uuid import UUID

from bothy_device import outage, reconnect, texts
from bothy_device.escapes import Command, EscapeParser
from bothy_device.events import (
    Accepted,
    Attach,
    Attached,
    Begin,
    Bell,
    Closed,
    Dial,
    Discard,
    Effect,
    Event,
    HangUp,
    Leave,
    Quit,
    Received,
    Refused,
    Resized,
    Say,
    Show,
    Suspend,
    Tick,
    Typed,
    Unreached,
    Woke,
    Written,
)
from bothy_device.outage import Choice, Outage
from bothy_device.reconnect import Phase
from bothy_device.waiting import WAITING_AFTER, Limits, Waiting
from bothy_wire.backoff import Backoff
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
from bothy_wire.close_codes import CloseCode, text_of
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
        way: reconnect.State,
        backoff: Backoff,
        chance: Callable[[], float],
        greeting: str | None = None,
    ) -> None:
        """``escape`` is the escape byte, empty for none; ``None`` where no person types but a pipe delivers.

        ``way`` is the first state of the reconnect rule, whose ``Dial`` the caller obeys by itself; ``chance`` gives random
        numbers from 0 up to 1. ``greeting`` was said before and is said again behind the first repaint, which begins by clearing the screen.
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
        self._size = self._told = _clamped(size)
        self._begun = False
        self._help_pings = False
        self._paired = False
        self._ready_due = False
        self._failed_at: float | None = None
        self._way = way
        self._backoff = backoff
        self._chance = chance
        self._outage = Outage(self._host, person=not self._piped)
        self._repainting = False
        self._unwritten: deque[tuple[int, bool]] = deque()
        """Lengths of what is with the terminal, and whether they count as output."""
        self._waiting = Waiting(limits, piped=self._piped, escape=self._escape, now=now)
        self._patience_at: float | None = now + WAITING_AFTER
        self._exit: Leave | None = None
        """How it ends once the terminal took what is still with it."""
        self._leave: Leave | None = None
        self._without: Leave = Leave(255)
        """How it ends if nothing can be tried any more."""
        self._look_at: float | None = None
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
        times.append(reconnect.deadline(self._way))
        if self._failed_at is not None:
            times.append(self._failed_at + self._fail_grace)
        return min((each for each in times if each is not None), default=None)

    # ---- events ---------------------------------------------------------------------------------------------------

    def _step(self, event: Event, now: float) -> None:
        match event:
            case Received(item):
                if self._exit is None and self._way.phase is Phase.UP:
                    self._received(item, now)
            case Accepted():
                self._go(reconnect.Accepted(), now)
            case Closed(code, reason):
                message = texts.lost(code, reason, self._id, opened=self._end.opened_once)
                ended = reason if code == CloseCode.SESSION_ENDED else None
                self._lost(reconnect.Lost(code), self._outage.closed(code), Leave(255, message, reason=ended), now)
            case Unreached(local, text):
                cause = outage.NETWORK if local else outage.RELAY
                self._lost(reconnect.Unreached(), cause, Leave(255 if self._begun else 1, text), now)
            case Refused(code, text):
                cause = self._outage.away() if code == "host_unavailable" else outage.REFUSED
                self._lost(reconnect.Refused(code), cause, Leave(255, text), now)
            case Attached(token_until):
                self._go(reconnect.Attached(token_until), now)
            case Woke():
                message = texts.lost(CloseCode.ABNORMAL, "", self._id, opened=self._end.opened_once)
                self._lost(reconnect.Woke(), outage.SLEPT, Leave(255, message), now)
            case Typed(data):
                self._typed(data, now)
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
                self._end.unpaired()
                self._ready_due = True
                if self._begun:
                    self._outage.begin(now, self._outage.away())
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
                self._opened(event.dropped_input, now)
            case Refusal(code):
                leave = Leave(255, texts.refusal(code))
                self._hang_up(reconnect.Declined(code), outage.DECLINED, leave, now)
            case Output(data):
                self._show(data, counts=True)
            case Repaint(data, last):
                if self._unwritten and not self._repainting:
                    self._effects.append(Discard())
                self._repainting = not last
                self._show(data, counts=False)
                if last and data and self._greeting:
                    self._effects.append(Say(self._greeting))
                if last:
                    self._greeting = None
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
        self._go(reconnect.Paired(), now)
        self._outage.end(now)
        if not self._begun:
            self._begun = True
            self._effects.append(Begin())
        self._patience_at = None
        self._repainting = False
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

    def _typed(self, data: bytes, now: float) -> None:
        for part in self._parser.feed(data):
            match part:
                case Command.LEAVE:
                    self._leave = self._exit or Leave(0, self._goes_on("left"))
                    return
                case Command.DROP:
                    self._effects.append(Say(f"{self._end.drop_unsent()} bytes dropped"))
                case Command.HELP:
                    self._effects.append(Say(self._help()))
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
        match self._outage.choice(keys, self._way, self._end.unsent_input, now):
            case Choice.TRY:
                self._go(reconnect.Now(), now)
            case Choice.DROP:
                self._end.drop_unsent()
            case Choice.GIVE_UP:
                self._leave = self._without
            case Choice.REFUSE:
                self._effects.append(Bell())
            case Choice.KEEP:
                self._type(keys)
        return None

    def _type(self, keys: bytes) -> None:
        if not self._end.open and not self._piped:
            room = max(0, self._input_buffer_bytes - self._end.pending_input)
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
            return self._fail(CloseCode.CHANNEL_FAILED, now)
        if self._failed_at is not None and now >= self._failed_at + self._fail_grace:
            return self._fail(CloseCode.CHANNEL_FAILED, now)
        due = reconnect.deadline(self._way)
        if due is not None and now >= due:
            self._go(reconnect.Passed(), now)
        if self._patience_at is not None and now >= self._patience_at:
            self._patience_at = None
            self._effects.append(Say(f"waiting for {self._host}; Ctrl-C gives up"))
        if self._waiting.ping_due(now):
            self._end.ping(now)
        return None

    def _watch(self, now: float) -> None:
        pending, connected = self._end.pending_input, self._end.open
        line = self._outage.line(self._way, self._end.unsent_input, now)
        self._effects += self._waiting.watch(pending, connected=connected, outage=line, now=now)
        self._look_at = self._outage.deadline(self._way, now)

    def _help(self) -> str:
        return "\n".join(
            (
                f"session {self._id} on {self._host}",
                f" {self._escape}.   leave; the session goes on",
                f" {self._escape}D   drop what was typed and not sent yet",
                f" {self._escape}^Z  suspend bothy",
                f" {self._escape}?   this help",
                f" {self._escape}{self._escape}   send the escape character",
                "(at the start of a line only)",
            )
        )

    # ---- the way to the terminal ------------------------------------------------------------------------------------

    def _lost(self, event: reconnect.Event, cause: str, without: Leave, now: float) -> None:
        """The connection, or an attempt to make one, is gone; ``without`` is how it ends if that is final."""
        self._end.unpaired()
        self._paired = self._ready_due = False
        self._failed_at = None
        if self._exit is not None:
            return
        self._without = without
        if self._begun:
            self._outage.begin(now, cause)
        self._go(event, now)
        if self._way.phase is Phase.REPLACED and self._piped:
            self._exit = without
        if self._way.phase is Phase.WAITING and self._way.tries == 1 and not self._begun:
            self._effects.append(Say(f"{cause}; trying again"))

    def _go(self, event: reconnect.Event, now: float) -> None:
        self._way, effect = reconnect.step(self._way, event, now, backoff=self._backoff, chance=self._chance())
        match effect:
            case reconnect.Dial():
                self._effects.append(Dial())
            case reconnect.Attach(take):
                self._effects.append(Attach(take))
            case reconnect.Stop():
                self._exit = self._exit or self._without
            case None:
                pass
            case _:
                assert_never(effect)

    def _hang_up(self, event: reconnect.Lost | reconnect.Declined, cause: str, leave: Leave, now: float) -> None:
        """We leave this connection, and the relay hears the code of ``leave``."""
        self._lost(event, cause, replace(leave, close=CloseCode.NORMAL), now)
        if self._exit is not None:
            self._leave = replace(self._exit, close=leave.close)
        else:
            self._effects.append(HangUp(leave.close))

    def _fail(self, code: CloseCode, now: float) -> None:
        leave = Leave(255, texts.lost(code, "", self._id, opened=self._end.opened_once), close=code)
        self._hang_up(reconnect.Lost(code), text_of(code), leave, now)

    # ---- ends -------------------------------------------------------------------------------------------------------

    def _goes_on(self, text: str) -> str:
        goes_on = self._end.opened_once and self._exit is None
        return f"{text}; the session goes on: bothy attach {self._id}" if goes_on else text

    def _with_lost_keys(self, leave: Leave) -> Leave:
        """Keys that are not known to be with the host do not vanish in silence."""
        keys = self._end.pending_input
        if not leave.message or not keys or self._end.open or not self._begun:
            return leave
        return replace(leave, message=f"{leave.message} (the last {keys} keys may not have arrived)")


def _clamped(size: Resized) -> Resized:
    """What the protocol allows; a terminal that says 0 does not know its size."""
    columns, rows = size.columns or 80, size.rows or 24
    return Resized(min(max(columns, SIZE_MIN), SIZE_MAX), min(max(rows, SIZE_MIN), SIZE_MAX))
