"""All sessions of this host, and what the server has not recorded of them yet.

``started`` and ``ended`` are said again with each heartbeat and behind each report until the server recorded them
(``docs/spec/protocol.md``, H2), so neither a lost connection nor a server without its database loses the end of a session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from bothy_host.authorized_devices import AuthorizedDevices
from bothy_host.gate import Order
from bothy_host.host import Host
from bothy_host.session import Ended, Reporter, Session
from bothy_wire.frames import (
    HostSessionClose,
    HostSessionEnded,
    HostSessionOpen,
    HostSessionRecorded,
    HostSessionStarted,
    ReportedSession,
)

_log = logging.getLogger(__name__)
_MOST_ENDS = 1024
"""Ends that wait for a server that records none; of more, the oldest go."""

News = HostSessionStarted | HostSessionEnded


class Sessions:
    """Owns the task of every session. ``tell`` hears news at once; it may drop them, they are kept here."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._running: dict[UUID, Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._started: dict[UUID, HostSessionStarted] = {}
        self._ended: dict[UUID, HostSessionEnded] = {}
        self.tell: Callable[[News], None] = _to_nobody

    def open(self, frame: HostSessionOpen) -> None:
        """``host.session.open``: run it, or dial again for one that runs."""
        session = self._running.get(frame.session_id)
        if frame.session_id in self._ended:
            self.tell(self._ended[frame.session_id])
        elif session is not None:
            session.redial()
        elif frame.profile not in self._host.settings.profile:
            self._over(frame.session_id, Ended("profile_unknown"))
        elif self._full(frame.profile):
            _log.warning("session %s: refused, this host or profile runs as many as it may", frame.session_id)
            self._over(frame.session_id, Ended("refused"))
        else:
            self._run(Order(frame.session_id, frame.data_path, frame.profile, frame.session_user))

    def close(self, frame: HostSessionClose) -> None:
        """``host.session.close``: end it now; the server knows."""
        session = self._running.get(frame.session_id)
        if session is not None:
            _log.info("session %s: closed by the relay: %s", frame.session_id, frame.reason)
            session.end_by_relay()
        self._forget(frame.session_id)

    def recorded(self, frame: HostSessionRecorded) -> None:
        """``host.session.recorded``: stop repeating it."""
        if frame.state != "closed":
            if frame.state != "opening":
                self._started.pop(frame.session_id, None)
            return
        session = self._running.get(frame.session_id)
        if session is not None and frame.session_id not in self._ended:
            session.close()
        elif session is not None:
            session.dismiss()
        self._forget(frame.session_id)

    def woke(self) -> None:
        """This machine slept."""
        for session in list(self._running.values()):
            session.woke()

    def report(self) -> list[ReportedSession]:
        """What runs here and did not end."""
        return [
            ReportedSession(session_id=session_id, phase=session.phase, attached=session.attached)
            for session_id, session in self._running.items()
            if not session.over
        ]

    def unrecorded(self) -> list[News]:
        """What to say again."""
        return [*self._started.values(), *self._ended.values()]

    async def stop(self) -> None:
        """End every session and its processes."""
        for session in list(self._running.values()):
            session.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _run(self, order: Order) -> None:
        reporter = Reporter(
            started=lambda: self._begun(order.session_id),
            ended=lambda ended: self._over(order.session_id, ended),
            devices_read=self._check_devices,
        )
        session = Session(self._host, order, reporter)
        self._running[order.session_id] = session
        task = asyncio.create_task(session.run())
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._done(order.session_id, task))

    def _done(self, session_id: UUID, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        del self._running[session_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("session %s failed", session_id, exc_info=error)

    def _full(self, profile: str) -> bool:
        live = [session for session in self._running.values() if not session.over]
        same = sum(session.order.profile == profile for session in live)
        return (
            len(live) >= self._host.settings.host.max_sessions
            or same >= self._host.settings.profile[profile].max_sessions
        )

    def _begun(self, session_id: UUID) -> None:
        self._started[session_id] = HostSessionStarted(session_id=session_id)
        self.tell(self._started[session_id])

    def _over(self, session_id: UUID, ended: Ended) -> None:
        if ended.reason is None:
            self._forget(session_id)
            return
        while len(self._ended) >= _MOST_ENDS:
            self._forget(next(iter(self._ended)))
        self._ended[session_id] = HostSessionEnded(
            session_id=session_id, reason=ended.reason, exit_status=ended.exit_status
        )
        self.tell(self._ended[session_id])

    def _check_devices(self, admitted: AuthorizedDevices) -> None:
        for session in list(self._running.values()):
            session.check_device(admitted)

    def _forget(self, session_id: UUID) -> None:
        self._started.pop(session_id, None)
        self._ended.pop(session_id, None)


def _to_nobody(news: News) -> None:
    """No control connection is eligible now."""
