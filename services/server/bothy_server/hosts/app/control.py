"""What a host says on its control connection, after it identified itself."""

from __future__ import annotations

from uuid import UUID

from bothy_server.hosts.app.ports import ControlLink, HostEvents, HostStore
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.domain.host import Host, close_code
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.unit import UnitOfWork
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import HostReport, HostSessionEnded, HostSessionStarted
from bothy_wire.ids import HostId, SessionId


class Control:
    """Use cases of one connection; the socket keeps its state."""

    def __init__(
        self, uow: UnitOfWork, clock: Clock, presence: Presence, events: HostEvents, last_seen_interval: float
    ) -> None:
        """``last_seen_interval`` in seconds: ``last_seen_at`` is written at most that often."""
        self._uow = uow
        self._clock = clock
        self._presence = presence
        self._events = events
        self._last_seen_interval = last_seen_interval
        self._seen_written: dict[HostId, float] = {}

    async def read(self, host_id: HostId) -> Host | None:
        """The host's row as it is now."""
        async with self._uow() as unit:
            return await unit.of(HostStore).get(host_id)

    async def refusal(self, host_id: HostId, pairing_seq: int) -> CloseCode | None:
        """Why a connection of this pairing has to go, by the row as it is now."""
        return close_code(await self.read(host_id), pairing_seq)

    async def report(self, link: ControlLink, boot_id: UUID, frame: HostReport) -> None:
        """Store what the host offers, and that it holds the new join value; it may be told to open sessions from now on."""
        async with self._uow() as unit:
            await unit.of(HostStore).record_report(
                link.host_id,
                link.conn_id,
                frame.profiles,
                local_confirm=frame.require_local_confirm,
                os=frame.os,
                arch=frame.arch,
            )
        self._presence.alive(link)
        await self._events.reported(link, boot_id, frame.sessions)

    async def heartbeat(self, link: ControlLink) -> None:
        """The host is alive."""
        self._presence.alive(link)
        now = self._clock.monotonic()
        if now - self._seen_written.get(link.host_id, 0) >= self._last_seen_interval:
            self._seen_written[link.host_id] = now
            async with self._uow() as unit:
                await unit.of(HostStore).touch([link.host_id])

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
        self._seen_written.pop(link.host_id, None)
        self._presence.left(link)
