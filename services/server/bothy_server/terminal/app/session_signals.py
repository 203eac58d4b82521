"""What a node does about the terminal's signals and about changes in the event log."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from bothy_server.hosts.app.api import ControlLinks
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import Event, Signal, UnitOfWork
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.app.ports import SessionRecord, SessionStore
from bothy_server.terminal.app.switchboard import Switchboard
from bothy_server.terminal.domain.session import SessionState
from bothy_server.terminal.domain.signals import SessionOpen, SessionPaired, SessionRedial
from bothy_wire.ids import HostId, SessionId


class SessionSignals:
    """Reads the rows that signals and events name, once a batch, and lets the rows decide (``docs/spec/cluster.md``, S5).

    One read at a time, from whichever source: else one that came late would undo what a newer one told (E2a).
    """

    def __init__(self, uow: UnitOfWork, switchboard: Switchboard, hosts: HostSessions, links: ControlLinks) -> None:
        """``links``: the control connections on this node."""
        self._uow = uow
        self._switchboard = switchboard
        self._hosts = hosts
        self._links = links
        self._turn = asyncio.Lock()

    async def handle(self, signals: Sequence[Signal]) -> None:
        """See the port ``SignalHandler``."""
        async with self._turn:
            await self._heard(signals)

    async def on_events(self, events: Sequence[LoggedEvent]) -> None:
        """New entries of the event log: sides of ended sessions leave, and their host is told."""
        async with self._turn:
            named = {
                SessionId(event.session_id)
                for event in (each.event for each in events)
                if event.type == "terminal_session.changed" and event.session_id is not None
                if self._switchboard.has(SessionId(event.session_id)) or self._host_is_here(event)
            }
            self._changed((await self._rows(named)).values())

    async def on_gap(self) -> None:
        """Signals or events were missed: read everything that is registered here."""
        async with self._turn:
            await self._missed()

    async def _heard(self, signals: Sequence[Signal]) -> None:
        ours = [each for each in signals if isinstance(each, SessionOpen | SessionPaired | SessionRedial)]
        rows = await self._rows({each.session_id for each in ours})
        for signal in ours:
            record = rows.get(signal.session_id)
            if record is None or record.host_id != signal.host_id:
                continue
            match signal:
                case SessionOpen():
                    self._opened(record)
                case SessionRedial() if record.state is not SessionState.CLOSED:
                    self._hosts.dial(record)
                case SessionPaired():
                    self._switchboard.paired_elsewhere(record.id)

    async def _missed(self) -> None:
        self._changed((await self._rows(self._switchboard.registered())).values())
        for link in self._links:
            if link.eligible:
                async with self._uow() as unit:
                    live = await unit.of(SessionStore).live_of_host(link.host_id)
                for record in live:
                    if record.state is SessionState.OPENING:
                        self._opened(record)

    def _opened(self, record: SessionRecord) -> None:
        if record.state is SessionState.CLOSED:
            self._hosts.end(record)
            return
        self._switchboard.expect(record)
        if record.state is SessionState.OPENING:
            self._hosts.dial(record)

    def _changed(self, records: Collection[SessionRecord]) -> None:
        self._switchboard.changed(records)
        for record in records:
            if record.state is SessionState.CLOSED:
                self._hosts.end(record)

    def _host_is_here(self, event: Event) -> bool:
        return event.host_id is not None and self._links.has(HostId(event.host_id))

    async def _rows(self, ids: set[SessionId]) -> dict[SessionId, SessionRecord]:
        if not ids:
            return {}
        async with self._uow() as unit:
            return await unit.of(SessionStore).rows(ids)
