"""What the server says to a host about its sessions, and what it makes of the answers (``docs/spec/protocol.md``, H1 to H3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from bothy_server.hosts.app.api import ControlLink, ControlLinks
from bothy_server.kernel.ids import time_of
from bothy_server.kernel.unit import Event, Unit, UnitOfWork
from bothy_server.terminal.app.open_session import end_sessions, tell_ended
from bothy_server.terminal.app.ports import SessionRecord, SessionStore
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.frames import (
    CloseReason,
    EndReason,
    HostSessionClose,
    HostSessionOpen,
    HostSessionRecorded,
    OpenFailure,
    ReportedSession,
)
from bothy_wire.ids import HostId, SessionId
from bothy_wire.limits import data_path


def open_frame(record: SessionRecord) -> HostSessionOpen:
    """Tell the host to dial for this session."""
    return HostSessionOpen(
        session_id=record.id,
        data_path=data_path(record.id),
        profile=record.profile,
        session_user=record.session_user,
        expires_at=record.expires_at.timestamp(),
    )


class HostSessions:
    """Implements the hosts' port ``HostEvents``."""

    def __init__(self, uow: UnitOfWork, links: ControlLinks) -> None:
        """``links``: the control connections on this node."""
        self._uow = uow
        self._links = links

    # ---- to the host --------------------------------------------------------------------------------------------

    def dial(self, record: SessionRecord) -> None:
        """Ask the host to dial, if a control connection is here that may be asked."""
        self._links.dial(record.host_id, open_frame(record))

    def end(self, record: SessionRecord) -> None:
        """Tell the host that a session is over, if its control connection is here."""
        if record.close_reason is not None:
            self._links.send(record.host_id, HostSessionClose(session_id=record.id, reason=record.close_reason))

    # ---- from the host ------------------------------------------------------------------------------------------

    async def unpaired(self, unit: Unit, host_id: HostId, reason: CloseReason) -> None:
        """See ``HostEvents``."""
        live = await unit.of(SessionStore).live_of_host(host_id)
        await end_sessions(unit, [record.id for record in live], reason)

    async def reported(self, link: ControlLink, boot_id: UUID, sessions: Sequence[ReportedSession]) -> None:
        """Make rows and host agree: each session that it names is started, detached or ended as the report says."""
        listed = {SessionId(each.session_id): each for each in sessions}
        async with self._uow() as unit:
            rows = {record.id: record for record in await unit.of(SessionStore).live_of_host(link.host_id)}
            for session_id in listed.keys() & rows.keys():
                if listed[session_id].phase == "running":
                    await _running(unit, rows[session_id], listed[session_id])
            gone = await unit.of(SessionStore).rows(listed.keys() - rows.keys())
        for session_id in listed.keys() - rows.keys():
            ended = gone.get(session_id)
            mine = ended is not None and ended.host_id == link.host_id
            reason = (ended.close_reason if mine and ended is not None else None) or "host_repaired"
            link.send(HostSessionClose(session_id=session_id, reason=reason))
        if link.serving:
            await self.serve(link, boot_id, sessions)

    async def serve(
        self,
        link: ControlLink,
        boot_id: UUID,
        sessions: Sequence[ReportedSession],
        deferred: Collection[SessionId] = (),
    ) -> None:
        """What the host does not name is dialled, or ended. A machine that may be a copy has no say in that.

        What it runs is dialled anew where that was asked for meanwhile (L6).
        """
        listed = {SessionId(each.session_id) for each in sessions}
        connected_at = time_of(link.conn_id)
        async with self._uow() as unit:
            live = await unit.of(SessionStore).live_of_host(link.host_id)
            over = {record.id: reason for record in live if (reason := _lost(record, listed, boot_id, connected_at))}
            for session_id, reason in over.items():
                await end_sessions(unit, [session_id], reason)
        for record in live:
            wanted = record.id in deferred or (record.paired_at is None and record.id not in listed)
            if wanted and record.id not in over and link.serving:
                link.send(open_frame(record))

    async def started(self, link: ControlLink, session_id: SessionId) -> None:
        """``opening`` to ``active``; the answer tells the state that is stored, whoever stored it."""
        async with self._uow() as unit:
            record = await unit.of(SessionStore).start(session_id, link.host_id)
            if record is not None:
                unit.emit(Event("terminal_session.changed", host_id=link.host_id, session_id=session_id))
        await self._answer(link, session_id)

    async def ended(self, link: ControlLink, session_id: SessionId, reason: EndReason, exit_status: int | None) -> None:
        """Any state to ``closed``. The exit status stays between host and device."""
        del exit_status
        async with self._uow() as unit:
            rows = await unit.of(SessionStore).rows([session_id])
            record = rows.get(session_id)
            if record is not None and record.host_id == link.host_id:
                close_reason, detail = _end(reason, record.state)
                for closed in await unit.of(SessionStore).close([session_id], close_reason, detail):
                    tell_ended(unit, closed)
        await self._answer(link, session_id)

    async def _answer(self, link: ControlLink, session_id: SessionId) -> None:
        async with self._uow() as unit:
            record = (await unit.of(SessionStore).rows([session_id])).get(session_id)
        state = record.state if record is not None and record.host_id == link.host_id else SessionState.CLOSED
        link.send(HostSessionRecorded(session_id=session_id, state=state.value))


def _lost(
    record: SessionRecord, listed: Collection[SessionId], boot_id: UUID, connected_at: datetime
) -> CloseReason | None:
    """Why a session that met is over, when the host does not name it (H2)."""
    if record.paired_at is None or record.id in listed:
        return None
    if record.boot_id != boot_id:
        return "host_restarted"
    return "host_lost" if record.paired_at < connected_at else None


def _end(reason: EndReason, state: SessionState) -> tuple[CloseReason, OpenFailure | None]:
    """Close reason and detail. What fails an opening revokes a session that ran: its host does not want the device any more."""
    match reason:
        case "process_exited" | "idle" | "max_duration" | "detach_expired":
            return reason, None
        case detail if state is SessionState.OPENING:
            return "open_failed", detail
        case _:
            return "revoked", None


async def _running(unit: Unit, record: SessionRecord, said: ReportedSession) -> None:
    if record.state is SessionState.OPENING:
        changed = await unit.of(SessionStore).start(record.id, record.host_id)
    elif record.state is SessionState.ACTIVE and not said.attached:
        changed = await unit.of(SessionStore).detach(record.id, record.paired_seq)
    else:
        changed = None
    if changed is not None:
        unit.emit(Event("terminal_session.changed", host_id=record.host_id, session_id=record.id))
