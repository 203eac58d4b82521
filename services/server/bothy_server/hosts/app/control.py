"""What a host says on its control connection, after it identified itself."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from bothy_server.hosts.app.ports import ControlLink, HostEvents, HostStore
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.app.verdict import Verdict
from bothy_server.hosts.domain.host import close_code
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.unit import StorageUnavailable, UnitOfWork
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import HostReport, HostSessionEnded, HostSessionStarted
from bothy_wire.ids import HostId, SessionId


class Control:
    """Use cases of one connection; the socket keeps its state."""

    def __init__(
        self,
        uow: UnitOfWork,
        clock: Clock,
        presence: Presence,
        events: HostEvents,
        verdict: Verdict,
        last_seen_interval: float,
    ) -> None:
        """``last_seen_interval`` in seconds: ``last_seen_at`` is written at most that often."""
        self._uow = uow
        self._clock = clock
        self._presence = presence
        self._events = events
        self._verdict = verdict
        self._last_seen_interval = last_seen_interval
        self._noted: dict[HostId, float] = {}

    async def refusal(self, host_id: HostId, pairing_seq: int) -> CloseCode | None:
        """Why a connection of this pairing has to go, by the row as it is now."""
        async with self._uow() as unit:
            host = await unit.of(HostStore).get(host_id)
        return close_code(host, pairing_seq)

    async def report(self, link: ControlLink, boot_id: UUID, frame: HostReport) -> None:
        """Store what the host offers, and that it holds the new join value; rows follow what it runs."""
        async with self._uow() as unit:
            await unit.of(HostStore).record_report(
                link.host_id,
                link.conn_id,
                frame.profiles,
                local_confirm=frame.require_local_confirm,
                os=frame.os,
                arch=frame.arch,
            )
        await self._events.reported(link, boot_id, frame.sessions)

    async def serve(self, link: ControlLink, boot_id: UUID, frame: HostReport, deferred: Collection[SessionId]) -> None:
        """From now on this link, which reported this, speaks for the host; ``deferred`` waited for that."""
        await self._events.serve(link, boot_id, frame.sessions, deferred)

    async def disable(self, host_id: HostId, pairing_seq: int) -> None:
        """Two machines hold the host's key."""
        await self._verdict.disable(host_id, pairing_seq)

    def announce(self, link: ControlLink) -> None:
        """Tell the other nodes at once that this link is here."""
        self._presence.announce(link)

    def alive(self, link: ControlLink) -> bool:
        """A heartbeat of an eligible link; whether it is time to :meth:`note_seen`."""
        self._presence.alive(link)
        now = self._clock.monotonic()
        due = now - self._noted.get(link.host_id, 0) >= self._last_seen_interval
        if due:
            self._noted[link.host_id] = now
        return due

    async def note_seen(self, host_id: HostId) -> None:
        """Write that the host was seen; what the database does not take is due again at the next heartbeat."""
        try:
            async with self._uow() as unit:
                await unit.of(HostStore).touch([host_id])
        except StorageUnavailable:
            self._noted.pop(host_id, None)
            raise

    async def session(self, link: ControlLink, frame: HostSessionStarted | HostSessionEnded) -> None:
        """A session of the host started or ended."""
        session_id = SessionId(frame.session_id)
        match frame:
            case HostSessionStarted():
                await self._events.started(link, session_id)
            case HostSessionEnded():
                await self._events.ended(link, session_id, frame.reason, frame.exit_status)

    def left(self, link: ControlLink) -> None:
        """An eligible link is gone."""
        self._noted.pop(link.host_id, None)
        self._presence.left(link)
