"""One session: a program on a pseudo-terminal, the conversation with its devices, and how long both may last.

The session lives from ``host.session.open`` until its end. Devices and connections come and go meanwhile. Everything runs
on the event loop in callbacks that never wait; :meth:`Session.run` is the one task, and it ends when the session has.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from bothy_host import lifetime, pty
from bothy_host.accounts import Account, AccountRefused, account_for
from bothy_host.authorized_devices import AuthorizedDevices
from bothy_host.clock import steady
from bothy_host.conversation import Conversation
from bothy_host.data import DataDialler
from bothy_host.gate import Order
from bothy_host.host import Host
from bothy_host.program import program_of
from bothy_host.pty import Pty, SpawnError
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import EndReason, Phase
from bothy_wire.signing import fingerprint

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a session ended. Without a ``reason`` the server knows already, or need not hear of it."""

    reason: EndReason | None
    exit_status: int | None = None


@dataclass(frozen=True, slots=True)
class Reporter:
    """Where a session tells that its program runs, how it ended, and that ``authorized_devices`` was read again."""

    started: Callable[[], None]
    ended: Callable[[Ended], None]
    devices_read: Callable[[AuthorizedDevices], None]


class Session:
    """Runs once."""

    def __init__(self, host: Host, order: Order, reporter: Reporter) -> None:
        self.order = order
        self._host = host
        self._reporter = reporter
        self._data = DataDialler(host, order.session_id, order.data_path, self)
        self._conversation = Conversation(host, order, self)
        self._account: Account | None = None
        self._pty: Pty | None = None
        self._life: lifetime.Lifetime | None = None
        self._status: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._outcome: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._dismissed = asyncio.Event()

    @property
    def phase(self) -> Phase:
        """For the report."""
        return "dialling" if self._life is None else "running"

    @property
    def attached(self) -> bool:
        """Whether a device's channel is open."""
        return self._conversation.open

    @property
    def over(self) -> bool:
        """Whether it ended; what is left is cleaning up."""
        return self._outcome.done()

    async def run(self) -> None:
        """From the first dial to the last process, also behind a fault."""
        try:
            await self._begin()
            await asyncio.shield(self._outcome)
        finally:
            await self._wind_up()

    def redial(self) -> None:
        """``host.session.open`` came again. Only a running session needs a newer connection for it."""
        if self.phase == "running" and not self.over:
            self._data.want()

    def woke(self) -> None:
        """This machine slept, and no timer of the event loop counted that."""
        self._data.woke()
        self.settle()

    def close(self) -> None:
        """End now, without waiting for anything; the server knows."""
        self._finish(Ended(None))
        self.dismiss()

    def end_by_relay(self) -> None:
        """``host.session.close``. Of an opening the relay closes the connection itself, and soon: its code tells which side
        was missed, and whoever hangs up first would take that from it (``cluster.md``, L2).
        """
        if self._life is None and self._data.up:
            self._finish(Ended(None))
        else:
            self.close()

    def dismiss(self) -> None:
        """The server recorded the end, so nobody needs the connection any more."""
        self._dismissed.set()

    def check_device(self, admitted: AuthorizedDevices) -> None:
        """``authorized_devices`` was read again: a device that is gone from it loses its session."""
        key = self._conversation.device_key
        if key is not None and not admitted.allows(fingerprint(key), self.order.profile, self.order.session_user):
            _log.warning("session %s: its device is no longer in authorized_devices", self.order.session_id)
            self._finish(Ended("refused"))

    # ---- the data connection speaks (data.Listener) --------------------------------------------------------------

    def paired(self) -> None:
        """A device is there."""
        self._conversation.paired()
        self.settle()

    def unpaired(self) -> None:
        """It went."""
        self._conversation.unpaired()
        if self._life is not None:
            self._life = lifetime.detached(self._life, steady())
        self.settle()

    def message(self, data: bytes) -> None:
        """A message of the channel."""
        self._conversation.message(data)
        self.settle()

    def stopped(self, code: int) -> None:
        """The relay wants no data connection now. A running program is ended by two of these codes only."""
        if self._life is None or code in (CloseCode.SESSION_ENDED, CloseCode.IDENTIFY_REFUSED):
            self.close()

    def take_outgoing(self) -> list[bytes]:
        """What the channel has for the device now."""
        return self._conversation.take_outgoing()

    # ---- the conversation speaks (conversation.Listener) ---------------------------------------------------------

    def opened(self, columns: int, rows: int, term: str, *, fresh: bool) -> None:
        """A device is in; the first one starts the program."""
        now = steady()
        if self._life is None:
            self._life = lifetime.Running(now, now)
            self._start(columns, rows, term)
            return
        self._life = lifetime.attached(self._life, now)
        if self._pty is not None:
            if fresh:
                # Typed before and never taken by the program: whoever typed it counts it as lost.
                self._conversation.written(self._pty.forget_input())
            self._pty.resize(columns, rows)

    def typed(self, data: bytes) -> None:
        """Input."""
        self._moved()
        if self._pty is not None:
            self._pty.write(data)

    def resized(self, columns: int, rows: int) -> None:
        """A new size."""
        if self._pty is not None:
            self._pty.resize(columns, rows)

    def acknowledged(self) -> None:
        """Somebody still takes output."""
        if self._life is not None:
            self._life = lifetime.acknowledged(self._life, steady())

    def refused(self) -> None:
        """A device may not enter: the end of an opening, nothing to a running session."""
        self.settle()
        if self._life is None:
            self._finish(Ended("refused"))

    def devices_read(self, admitted: AuthorizedDevices) -> None:
        """For all sessions."""
        self._reporter.devices_read(admitted)

    # ---- the program speaks (pty.Listener) -----------------------------------------------------------------------

    def wants(self) -> int:
        """How much output may be read now."""
        return self._conversation.wants()

    def printed(self, data: bytes) -> None:
        """Output. Its reader asks again by itself."""
        self._conversation.printed(data)
        self._moved()
        self._send()

    def taken(self, count: int) -> None:
        """The terminal took input."""
        self._conversation.written(count)
        self._send()

    def started(self) -> None:
        """The program runs."""
        _log.info("session %s: %s runs as %s", self.order.session_id, self.order.profile, self.order.session_user)
        self._reporter.started()

    def failed(self, reason: str) -> None:
        """The program could not be started."""
        _log.error("session %s: cannot start: %s", self.order.session_id, reason)
        self._conversation.notice(f"the program could not be started: {reason}")
        self._finish(Ended("spawn_failed"))

    def exited(self, status: int) -> None:
        """The program ended, and everything that it printed is here."""
        _log.info("session %s: %s", self.order.session_id, pty.exit_text(status))
        self._status = status
        self._life = lifetime.exited(steady(), self._host.settings.host.exit_linger)
        self._conversation.exited(status)
        self.settle()

    # ---- what follows from a change ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Send what may be sent, read what may be read, set the timer."""
        self._send()
        if self._pty is not None:
            self._pty.read_on()
        if self._status is not None and self._conversation.exit_acknowledged:
            self._finish(Ended("process_exited", self._status))

    def _send(self) -> None:
        self._data.stir()
        self._set_timer()

    async def _begin(self) -> None:
        profile = self._host.settings.profile[self.order.profile]
        try:
            self._account = await asyncio.to_thread(
                account_for, self.order.session_user, profile.allowed, allow_root=self._host.settings.allow_root
            )
        except AccountRefused as refused:
            _log.warning("session %s: %s", self.order.session_id, refused)
            self._finish(Ended("user_unknown"))
        else:
            self._data.want()

    async def _wind_up(self) -> None:
        self._finish(Ended("spawn_failed"))  # counts only when nothing else ended it: a fault of this program
        ended = self._outcome.result()
        self._reporter.ended(ended)
        try:
            if self._pty is not None and self._status is None:
                await self._pty.end(self._host.settings.host.hup_grace)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._host.settings.host.close_linger):
                    await self._dismissed.wait()
        finally:
            await self._conversation.stop()
            await self._data.stop()

    def _start(self, columns: int, rows: int, term: str) -> None:
        assert self._account is not None
        program = program_of(self._host.settings.profile[self.order.profile], self._account, term)
        try:
            self._pty = Pty(program, columns, rows, self)
        except SpawnError as error:
            self.failed(str(error))

    def _moved(self) -> None:
        if self._life is not None and self._conversation.open:
            self._life = lifetime.moved(self._life, steady())

    def _finish(self, ended: Ended) -> None:
        self._conversation.close()
        if not self._outcome.done():
            self._outcome.set_result(ended)
        self._send()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._outcome.done():
            return
        life = None if self._life is None else lifetime.deadline(self._life, self._host.bounds)
        known = (self._conversation.deadline(), life)
        due = min((each for each in known if each is not None), default=None)
        if due is not None:
            self._timer = asyncio.get_running_loop().call_later(max(due - steady(), 0), self._on_time)

    def _on_time(self) -> None:
        now = steady()
        if self._conversation.overdue(now):
            self._data.close(CloseCode.CHANNEL_FAILED)
            return
        if self._life is not None:
            self._life, word = lifetime.due(self._life, now, self._host.bounds)
            match word:
                case lifetime.Warn(seconds):
                    self._conversation.notice(
                        f"this session is idle and ends in {seconds:.0f} s unless something happens"
                    )
                case lifetime.Expire(reason):
                    self._finish(Ended(reason, self._status))
                case None:
                    pass
        self.settle()
