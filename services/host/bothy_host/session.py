"""One session: a program on a pseudo-terminal, a channel to whichever device is there, and the rules between them.

The session lives from ``host.session.open`` until its end. Devices and connections come and go meanwhile. Everything runs
on the event loop in callbacks that never wait; :meth:`Session.run` is the one task, and it ends when the session has.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from bothy_host import lifetime, pty
from bothy_host.accounts import Account, AccountRefused, account_for
from bothy_host.authorized_devices import AuthorizedDevices
from bothy_host.clock import steady
from bothy_host.data import DataLink
from bothy_host.gate import HandshakeRefused, Order, admit
from bothy_host.host import Host
from bothy_host.output import Output
from bothy_host.pty import Program, Pty, SpawnError
from bothy_wire.channel import HostEnd, Message1, Resume
from bothy_wire.channel.host_end import Acknowledged, HostEvent, Input, Offered, Opened, Pinged, Resized
from bothy_wire.close_codes import CloseCode
from bothy_wire.errors import ChannelError
from bothy_wire.frames import EndReason, Phase
from bothy_wire.limits import LINEAGE_BYTES
from bothy_wire.signing import fingerprint

_log = logging.getLogger(__name__)
_TERM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a session ended. Without a ``reason`` the server knows already, or must not hear of it."""

    reason: EndReason | None
    exit_status: int | None = None


class Session:
    """Runs once. ``started`` and ``ended`` are told to the server until it recorded them."""

    def __init__(
        self,
        host: Host,
        order: Order,
        *,
        started: Callable[[], None],
        ended: Callable[[Ended], None],
        devices_read: Callable[[AuthorizedDevices], None],
    ) -> None:
        now = steady()
        own, channel = host.settings.host, host.settings.channel
        self._host = host
        self.order = order
        self._tell_started, self._tell_ended, self._devices_read = started, ended, devices_read
        self._link = DataLink(host, order.session_id, order.data_path, self)
        self._end = HostEnd(
            channel_key=host.pairing.state.channel,
            session_id=order.session_id,
            host_id=host.pairing.state.host_id,
            limits=channel.limits(),
        )
        self._output = Output(
            replay_bytes=own.replay_bytes, window=channel.output_window, hold=own.hold_output, now=now
        )
        self._account: Account | None = None
        self._pty: Pty | None = None
        self._life: lifetime.Lifetime | None = None
        self._status: int | None = None
        self._exit_sent = False
        self._linger_from = now
        self._resume: Resume = "new"
        self._offer = 0
        """Number of the pairing; what was decided for an older one is void."""
        self._judging: set[asyncio.Task[None]] = set()
        self._device_key: bytes | None = None
        self._failed_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._outcome: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._dismissed = asyncio.Event()

    @property
    def session_id(self) -> UUID:
        """Which."""
        return self.order.session_id

    @property
    def phase(self) -> Phase:
        """For the report."""
        return "dialling" if self._life is None else "running"

    @property
    def attached(self) -> bool:
        """Whether a device's channel is open."""
        return self._end.open

    @property
    def over(self) -> bool:
        """Whether it ended; what is left is cleaning up."""
        return self._outcome.done()

    async def run(self) -> None:
        """From the first dial to the last process."""
        try:
            profile = self._host.settings.profile[self.order.profile]
            self._account = await asyncio.to_thread(
                account_for, self.order.session_user, profile.allowed, allow_root=self._host.settings.allow_root
            )
        except AccountRefused as refused:
            _log.warning("session %s: %s", self.session_id, refused)
            self._tell_ended(Ended("user_unknown"))
            return
        self._link.want()
        try:
            ended = await self._outcome
            self._tell_ended(ended)
            if self._pty is not None and self._status is None:
                await self._pty.end(self._host.settings.host.hup_grace)
            if ended.reason is not None:
                await _within(self._dismissed, self._host.settings.host.close_linger)
        finally:
            self._unset_timer()
            for task in self._judging:
                task.cancel()
            await self._link.stop()

    def redial(self) -> None:
        """``host.session.open`` came again. Only a running session needs a newer connection for it."""
        if self.phase == "running":
            self._link.want()

    def close(self, ended: Ended | None = None) -> None:
        """End now, without waiting for anything; by default because the server said so."""
        self._finish(ended or Ended(None))
        if ended is None:
            self.dismiss()

    def dismiss(self) -> None:
        """The server recorded the end, so nobody needs the connection any more."""
        self._dismissed.set()

    def check_device(self, admitted: AuthorizedDevices) -> None:
        """A handshake somewhere read ``authorized_devices`` again: a device that is gone from it loses its session."""
        if self._device_key is not None and not admitted.allows(
            fingerprint(self._device_key), self.order.profile, self.order.session_user
        ):
            _log.warning("session %s: its device is no longer in authorized_devices", self.session_id)
            self.close(Ended("refused"))

    # ---- the data connection speaks (data.Listener) --------------------------------------------------------------

    def paired(self) -> None:
        """A device is there and will shake hands."""
        self._offer += 1
        self._end.paired(steady())
        self._settle()

    def unpaired(self) -> None:
        """It went."""
        now = steady()
        self._offer += 1
        self._failed_at = None
        self._end.unpaired()
        self._output.left(now)
        if self._life is not None:
            self._life = lifetime.detached(self._life, now)
        self._settle()

    def message(self, data: bytes) -> None:
        """A message of the channel."""
        if self._failed_at is not None:
            return
        try:
            for event in self._end.receive(data, steady()):
                self._on_event(event)
        except ChannelError as error:
            _log.warning("session %s: %s", self.session_id, error)
            self._failed_at = steady()
        self._settle()

    def stopped(self, code: int) -> None:
        """The relay wants no data connection of this session. Another refusal than these two leaves the program alone."""
        if self._life is None or code in (CloseCode.SESSION_ENDED, CloseCode.IDENTIFY_REFUSED):
            self.close()

    # ---- the channel speaks --------------------------------------------------------------------------------------

    def _on_event(self, event: HostEvent) -> None:
        match event:
            case Offered(message1, device_key):
                task = asyncio.create_task(self._judge(self._offer, message1, device_key))
                self._judging.add(task)
                task.add_done_callback(self._judging.discard)
            case Opened(columns, rows, term):
                self._open(columns, rows, term)
            case Input(data):
                self._moved()
                if self._pty is not None:
                    self._pty.write(data)
            case Resized(columns, rows):
                if self._pty is not None:
                    self._pty.resize(columns, rows)
            case Acknowledged(position):
                self._linger_from = steady()
                self._output.acknowledged(position)
            case Pinged():
                pass

    async def _judge(self, offer: int, message1: Message1, device_key: bytes) -> None:
        try:
            if self._outcome.done():
                raise HandshakeRefused("session_unknown", "the session has ended")
            admitted = await admit(self._host, self.order, message1, device_key)
        except HandshakeRefused as refused:
            _log.warning("session %s: handshake refused, %s: %s", self.session_id, refused.code, refused)
            if offer == self._offer and self._failed_at is None:
                self._end.refuse(refused.code)
                self._settle()
            if self._life is None:
                self.close(Ended("refused"))
            return
        if admitted is not None:
            self._devices_read(admitted)
        if offer != self._offer or self._failed_at is not None or self._outcome.done():
            return
        self._device_key = device_key
        self._accept(message1)
        self._settle()

    def _accept(self, message1: Message1) -> None:
        resume = self._end.resume_of(message1, self._output.start)
        position = message1.output_processed if resume == "exact" else self._output.end
        lineage = self._end.lineage if resume != "new" else None
        self._end.accept(resume, lineage or os.urandom(LINEAGE_BYTES), position)
        self._output.joining(position)
        self._resume = resume

    def _open(self, columns: int, rows: int, term: str) -> None:
        """The device answered: only now anything changes."""
        now = steady()
        picture, missing = self._output.repaint(self._host.settings.host.repaint_bytes)
        self._output.joined()
        self._exit_sent = False
        self._linger_from = now
        if self._resume != "exact":
            self._end.repaint(picture)
            if missing:
                self._end.notice(f"{missing} bytes of output were printed while nobody was attached and are not shown")
        if self._life is None:
            self._life = lifetime.Lifetime(now, now)
            self._start(columns, rows, term)
            return
        self._life = lifetime.attached(self._life, now)
        if self._pty is not None:
            if self._resume == "new":
                # Typed before and never taken by the program: the device that typed it counts it as lost.
                self._end.written(self._pty.forget_input())
            self._pty.resize(columns, rows)

    def _start(self, columns: int, rows: int, term: str) -> None:
        assert self._account is not None
        profile = self._host.settings.profile[self.order.profile]
        program = Program(
            account=self._account,
            command=None if profile.command is None else tuple(profile.command),
            folder=profile.cwd,
            environment=pty.environment(
                self._account, term if _TERM.fullmatch(term) else "xterm-256color", profile.env
            ),
        )
        try:
            self._pty = Pty(program, columns, rows, self)
        except SpawnError as error:
            self.failed(str(error))

    # ---- the program speaks (pty.Listener) -----------------------------------------------------------------------

    def wants(self) -> int:
        """How much output may be read now."""
        return self._output.wants(steady(), self._end.output_credit)

    def printed(self, data: bytes) -> None:
        """The program printed."""
        self._output.printed(data)
        self._moved()
        self._settle(reading=False)

    def taken(self, count: int) -> None:
        """The terminal took input."""
        self._end.written(count)
        self._settle(reading=False)

    def started(self) -> None:
        """The program runs."""
        _log.info("session %s: %s runs as %s", self.session_id, self.order.profile, self.order.session_user)
        self._tell_started()

    def failed(self, reason: str) -> None:
        """The program could not be started."""
        _log.error("session %s: cannot start: %s", self.session_id, reason)
        self._notice(f"the program could not be started: {reason}")
        self._finish(Ended("spawn_failed"))

    def exited(self, status: int) -> None:
        """The program ended, and everything that it printed is here."""
        _log.info("session %s: %s", self.session_id, pty.exit_text(status))
        self._status = status
        self._linger_from = steady()
        self._settle()

    # ---- what follows from every change --------------------------------------------------------------------------

    def _moved(self) -> None:
        if self._life is not None and self._end.open:
            self._life = lifetime.moved(self._life, steady())

    def _notice(self, text: str) -> None:
        if self._end.open:
            self._end.notice(text)

    def _settle(self, *, reading: bool = True) -> None:
        """Send what may be sent, read what may be read, set the timer."""
        while data := self._output.take(self._end.output_credit):
            self._end.output(data)
        if self._status is not None:
            if self._end.exit_acknowledged:
                self._finish(Ended("process_exited", self._status))
            elif self._end.open and self._output.complete and not self._exit_sent:
                self._end.exit(self._status)
                self._exit_sent = True
        self._link.send(self._end.take_outgoing())
        if reading and self._pty is not None:
            self._pty.read_on()
        self._set_timer()

    def _finish(self, ended: Ended) -> None:
        self._link.send(self._end.take_outgoing())
        self._unset_timer()
        if not self._outcome.done():
            self._outcome.set_result(ended)

    def _set_timer(self) -> None:
        self._unset_timer()
        if self._outcome.done():
            return
        deadlines = [self._end.deadline(), self._fail_deadline(), self._output.deadline(), self._linger_deadline()]
        if self._life is not None and self._status is None:
            deadlines.append(lifetime.deadline(self._life, self._host.bounds))
        due = min((each for each in deadlines if each is not None), default=None)
        if due is not None:
            self._timer = asyncio.get_running_loop().call_later(max(due - steady(), 0), self._on_time)

    def _unset_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        now = steady()
        if any(each is not None and now >= each for each in (self._end.deadline(), self._fail_deadline())):
            self._link.close(CloseCode.CHANNEL_FAILED)
            return
        linger = self._linger_deadline()
        if linger is not None and now >= linger:
            self._finish(Ended("process_exited", self._status))
            return
        if self._life is not None and self._status is None:
            self._life, word = lifetime.due(self._life, now, self._host.bounds)
            match word:
                case lifetime.Warn(seconds):
                    self._notice(f"this session is idle and ends in {seconds:.0f} s unless something happens")
                case lifetime.Expire(reason):
                    self._finish(Ended(reason))
                    return
                case None:
                    pass
        self._settle()

    def _fail_deadline(self) -> float | None:
        return None if self._failed_at is None else self._failed_at + self._host.settings.channel.fail_grace

    def _linger_deadline(self) -> float | None:
        return None if self._status is None else self._linger_from + self._host.settings.host.exit_linger


async def _within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
