"""What passes between a session and the devices that come and go: handshakes, the channel, the output that is sent.

Two answers are waited for: whether a device may enter, and what the screen shows. The pairing may be gone when one is ready;
its number tells.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from typing import Protocol

from bothy_host.authorized_devices import AuthorizedDevices
from bothy_host.clock import steady
from bothy_host.gate import HandshakeRefused, Order, admit
from bothy_host.host import Host
from bothy_host.output import Output
from bothy_wire.channel import HostEnd, Message1, Resume
from bothy_wire.channel.host_events import Acknowledged, HostEvent, Input, Offered, Opened, Pinged, Resized
from bothy_wire.errors import ChannelError
from bothy_wire.limits import LINEAGE_BYTES

_log = logging.getLogger(__name__)
_LOOK_AGAIN_S = 0.005
"""Until a screen that was behind is looked at again. No key: a terminal's frame is three times as long."""


class Listener(Protocol):
    """What a conversation tells its session."""

    def opened(self, columns: int, rows: int, term: str, *, fresh: bool) -> None:
        """A device is in. ``fresh``: it does not know what was typed before."""

    def typed(self, data: bytes) -> None:
        """Input for the program."""

    def resized(self, columns: int, rows: int) -> None:
        """The device's terminal has a new size."""

    def acknowledged(self) -> None:
        """The device's terminal took more output than ever before."""

    def refused(self) -> None:
        """A device may not enter; it was told, or left."""

    def devices_read(self, admitted: AuthorizedDevices) -> None:
        """The file of admitted devices was read again."""

    def settle(self) -> None:
        """Something changed outside of any call of the session."""


class Conversation:
    """The devices' side of one session. After every call the session sends what :meth:`take_outgoing` gives."""

    def __init__(self, host: Host, order: Order, listener: Listener) -> None:
        own, channel, state = host.settings.host, host.settings.channel, host.pairing.state
        self._host = host
        self._order = order
        self._listener = listener
        self._end = HostEnd(
            channel_key=state.channel, session_id=order.session_id, host_id=state.host_id, limits=channel.limits()
        )
        self._screen = host.make_screen(own.repaint_bytes)
        self._output = Output(
            self._screen,
            replay_bytes=own.replay_bytes,
            window=channel.output_window_max,
            hold=own.hold_output,
            now=steady(),
        )
        self.device_key: bytes | None = None
        """Channel key of the device that was let in last."""
        self._pairing = 0
        self._awaited: set[asyncio.Task[None]] = set()
        self._resume: Resume = "new"
        self._failed_at: float | None = None
        self._status: int | None = None
        self._exit_sent = False
        self._acknowledged = 0
        self._closed = False

    @property
    def open(self) -> bool:
        """Whether a device's channel is open."""
        return self._end.open

    @property
    def exit_acknowledged(self) -> bool:
        """Whether a device has everything, the exit status included."""
        return self._end.exit_acknowledged

    def paired(self) -> None:
        """A device is there and will shake hands."""
        self._pairing += 1
        self._end.paired(steady())

    def unpaired(self) -> None:
        """It went."""
        self._pairing += 1
        self._failed_at = None
        self._end.unpaired()
        self._output.left(steady())

    def message(self, data: bytes) -> None:
        """A message of the channel. A channel that failed hears nothing more in this pairing."""
        if self._failed_at is not None:
            return
        try:
            for event in self._end.receive(data, steady()):
                self._on_event(event)
        except ChannelError as error:
            _log.warning("session %s: %s", self._order.session_id, error)
            self._failed_at = steady()

    def printed(self, data: bytes) -> None:
        """The program printed."""
        self._output.printed(data)

    def wants(self) -> int:
        """How much of the program's output may be read now."""
        return self._output.wants(steady(), self._end.output_credit)

    def written(self, count: int) -> None:
        """The program's terminal took input, or it was dropped."""
        self._end.written(count)

    def exited(self, status: int) -> None:
        """The program ended and everything that it printed is here."""
        self._status = status

    def notice(self, text: str) -> None:
        """A line for the person, when there is one."""
        if self._end.open:
            self._end.notice(text)

    def take_outgoing(self) -> list[bytes]:
        """The messages to send now, in order."""
        while data := self._output.take(self._end.output_credit):
            self._end.output(data, steady())
        if self._status is not None and self._end.open and self._output.complete and not self._exit_sent:
            # A device that resumed behind the exit status has it already.
            self._exit_sent = True
            if not self._end.exit_acknowledged:
                self._end.exit(self._status)
        return self._end.take_outgoing()

    def deadline(self) -> float | None:
        """When time alone changes something."""
        look = steady() + _LOOK_AGAIN_S if self._screen.behind else None
        known = (self._end.deadline(), self._fail_deadline(), self._output.deadline(), look)
        return min((each for each in known if each is not None), default=None)

    def overdue(self, now: float) -> bool:
        """Whether the handshake or the end of a failed channel took too long: close with 4107."""
        return any(each is not None and now >= each for each in (self._end.deadline(), self._fail_deadline()))

    def close(self) -> None:
        """The session has ended; whoever still comes is refused."""
        self._closed = True

    async def stop(self) -> None:
        """Give up what is being decided or painted."""
        for task in self._awaited:
            task.cancel()
        await asyncio.gather(*self._awaited, return_exceptions=True)
        self._screen.close()

    def _await(self, answer: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(answer)
        self._awaited.add(task)
        task.add_done_callback(self._awaited.discard)

    def _on_event(self, event: HostEvent) -> None:
        match event:
            case Offered(message1, device_key):
                self._await(self._judge(self._pairing, message1, device_key))
            case Opened(columns, rows, term):
                self._open(columns, rows, term)
            case Input(data):
                self._listener.typed(data)
            case Resized(columns, rows):
                self._screen.resize(columns, rows)
                self._listener.resized(columns, rows)
            case Acknowledged(position):
                if position > self._acknowledged:
                    self._acknowledged = position
                    self._output.acknowledged(position)
                    self._listener.acknowledged()
            case Pinged():
                pass

    async def _judge(self, pairing: int, message1: Message1, device_key: bytes) -> None:
        def waits() -> bool:
            return pairing == self._pairing and self._failed_at is None

        try:
            if self._closed:
                raise HandshakeRefused("session_unknown", "the session has ended")
            admitted = await admit(self._host, self._order, message1, device_key)
        except HandshakeRefused as refused:
            _log.warning("session %s: handshake refused, %s: %s", self._order.session_id, refused.code, refused)
            if waits():
                self._end.refuse(refused.code)
            self._listener.refused()
            if refused.admitted is not None:
                self._listener.devices_read(refused.admitted)  # the refused device may have other sessions
            return
        if admitted is not None:
            self._listener.devices_read(admitted)
        if waits() and not self._closed:
            self.device_key = device_key
            self._accept(message1)
            self._listener.settle()

    def _accept(self, message1: Message1) -> None:
        resume = self._end.resume_of(message1, self._output.start)
        position = message1.output_processed if resume == "exact" else self._output.end
        lineage = self._end.lineage if resume != "new" else None
        self._end.accept(resume, lineage or os.urandom(LINEAGE_BYTES), position, steady())
        self._output.joining(position)
        self._resume = resume

    def _open(self, columns: int, rows: int, term: str) -> None:
        """The device answered: only now anything changes."""
        self._screen.resize(columns, rows)
        self._exit_sent = False
        if self._resume == "exact":
            self._output.joined()
        else:
            self._await(self._show(self._pairing, self._output.unacknowledged))
        self._listener.opened(columns, rows, term, fresh=self._resume == "new")

    async def _show(self, pairing: int, unseen: int) -> None:
        """Bring the screen, and the output behind it. The device types meanwhile; ``unseen`` bytes it had not got."""
        picture = await self._screen.repaint()
        if pairing != self._pairing or not self._end.open:
            return
        self._end.repaint(picture)
        if unseen > self._host.settings.host.repaint_bytes:
            self._end.notice(f"{unseen} bytes of output were printed while nobody was attached; their end is shown")
        self._output.joined()
        self._listener.settle()

    def _fail_deadline(self) -> float | None:
        return None if self._failed_at is None else self._failed_at + self._host.settings.channel.fail_grace
