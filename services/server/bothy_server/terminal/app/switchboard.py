"""All rendezvous of a node: who arrives is led to the one of their session.

Terminal bytes never pass here (``docs/architecture.md``, Data plane).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from bothy_server.hosts.app.api import ControlLinks
from bothy_server.identity.app.api import Tokens
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.unit import UnitOfWork
from bothy_server.terminal.app.earlier_decision import EarlierDecision
from bothy_server.terminal.app.ports import Pump, SessionRecord, SideLink, Signals, Telemetry
from bothy_server.terminal.app.rendezvous import Means, Rendezvous
from bothy_server.terminal.app.row_reader import RowReader
from bothy_server.terminal.app.storage_watch import StorageWatch
from bothy_server.terminal.app.traffic import Traffic
from bothy_server.terminal.domain import rendezvous as rule
from bothy_server.terminal.domain.admission import HostIdentity, Identity
from bothy_wire.close_codes import CloseCode
from bothy_wire.errors import FrameError
from bothy_wire.frames import Decoder, SideReady
from bothy_wire.ids import SessionId

_ready = Decoder(SideReady)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Most entries on this node (keys ``terminal.max_pending_per_node``, ``terminal.max_expectations_per_node``)."""

    pending: int
    expectations: int


class Switchboard:
    """Implements ``SideEvents``; every call is made on the loop and returns at once."""

    def __init__(
        self,
        *,
        uow: UnitOfWork,
        tokens: Tokens,
        clock: Clock,
        pump: Pump,
        control_links: ControlLinks,
        signals: Signals,
        telemetry: Telemetry,
        limits: rule.Limits,
        bounds: Bounds,
        storage_retry: float,
        earlier: EarlierDecision,
        traffic: Traffic,
        tasks: asyncio.TaskGroup,
    ) -> None:
        """``tasks`` owns every read and write that is under way; ``storage_retry`` in seconds."""
        self._bounds = bounds
        self._clock = clock
        self._means = Means(
            uow=uow,
            tokens=tokens,
            clock=clock,
            pump=pump,
            control_links=control_links,
            signals=signals,
            telemetry=telemetry,
            limits=limits,
            reader=RowReader(uow, tasks),
            storage=StorageWatch(uow, clock, storage_retry, self._storage_changed, tasks),
            earlier=earlier,
            traffic=traffic,
            tasks=tasks,
        )
        self._sessions: dict[SessionId, Rendezvous] = {}
        self._places: dict[SideLink, tuple[Rendezvous, int]] = {}
        self._registered = 0
        self._draining = False
        self._dismissed: set[SideLink] = set()
        self._empty = asyncio.Event()

    # ---- what happens -------------------------------------------------------------------------------------------

    def expect(self, record: SessionRecord) -> None:
        """A signal said that sides of this session may come here. Beyond the bound E2 serves a side that comes unexpected."""
        if self._draining:
            return
        if record.id in self._sessions or len(self._sessions) < self._bounds.expectations:
            self._rendezvous(record.id).expect(record)

    def paired_elsewhere(self, session_id: SessionId) -> None:
        """A signal said that both sides met on another node."""
        rendezvous = self._sessions.get(session_id)
        if rendezvous is not None:
            rendezvous.feed(rule.PairedElsewhere())

    def has_room(self, session_id: SessionId) -> bool:
        """Whether a side of this session may come. The counterpart of one that waits always may: then both are served."""
        rendezvous = self._sessions.get(session_id)
        return (rendezvous is not None and bool(rendezvous.unmet)) or self.pending < self._bounds.pending

    def arrived(self, session_id: SessionId, link: SideLink, identity: Identity) -> None:
        """A side proved who it is."""
        self._registered += 1
        rendezvous = self._rendezvous(session_id)
        self._places[link] = rendezvous, self._registered
        rendezvous.arrive(self._registered, link, identity)

    def text(self, link: SideLink, payload: bytes) -> None:
        """The one text message of an unpaired side: it must be ``side.ready``."""
        place = self._places.get(link)
        if place is None:
            return
        try:
            _ready.decode(payload)
        except FrameError:
            link.close(CloseCode.PROTOCOL_VIOLATION, "side.ready expected")
            return
        rendezvous, conn = place
        link.discard(False)
        rendezvous.feed(rule.Readied(conn))

    def gone(self, link: SideLink, code: int) -> None:  # noqa: ARG002 - the port tells it; no rule asks why
        """A connection ended. Compares identity: an old link never removes a newer side (E7)."""
        self._dismissed.discard(link)
        place = self._places.pop(link, None)
        if place is not None:
            rendezvous, conn = place
            rendezvous.leave(conn)
            if not self._places:
                self._empty.set()

    def stalled(self, link: SideLink) -> None:
        """The peer of a link takes nothing."""
        place = self._places.get(link)
        if place is not None:
            rendezvous, conn = place
            rendezvous.feed(rule.Stalled(conn))

    def storage_lost(self) -> None:
        """Somebody else found that the database does not answer."""
        self._means.storage.lost()

    def changed(self, records: Iterable[SessionRecord]) -> None:
        """The event log, or a gap in it, brought these rows."""
        for record in records:
            rendezvous = self._sessions.get(record.id)
            if rendezvous is not None:
                rendezvous.change(record)

    # ---- what others ask ----------------------------------------------------------------------------------------

    def has(self, session_id: SessionId) -> bool:
        """Whether anything of this session is registered here."""
        return session_id in self._sessions

    def registered(self) -> set[SessionId]:
        """Sessions with anything here."""
        return set(self._sessions)

    def remembered_host(self, session_id: SessionId) -> HostIdentity | None:
        """The host of a session, where it may come without being looked up since the database is away (N1a)."""
        rendezvous = self._sessions.get(session_id)
        return None if rendezvous is None else rendezvous.remembered_host

    @property
    def sides(self) -> int:
        """Sides on this node."""
        return len(self._places)

    @property
    def pairs(self) -> int:
        """Pairs on this node."""
        return sum(each.paired for each in self._sessions.values())

    @property
    def pending(self) -> int:
        """Sides that wait for their session's first pairing."""
        return sum(len(each.unmet) for each in self._sessions.values())

    # ---- the end ------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """From now on this node expects nobody, and acts for no session (N2)."""
        self._draining = True
        for rendezvous in list(self._sessions.values()):
            rendezvous.feed(rule.Drain())

    def dismiss(self, pairs: int, code: int, reason: str) -> None:
        """Close every side that is alone, and both sides of so many pairs, of those that are not closed yet (N2)."""
        for rendezvous in list(self._sessions.values()):
            links = rendezvous.links - self._dismissed
            if not links or (rendezvous.paired and pairs == 0):
                continue
            pairs -= rendezvous.paired
            self._dismissed |= links
            for link in links:
                link.close(code, reason)

    def close_all(self, code: int, reason: str) -> None:
        """Close every side, both of a pair at once; for the stop of the node."""
        for link in list(self._places):
            link.close(code, reason)

    def stop(self) -> None:
        """No timer fires any more. Nobody may call anything afterwards."""
        for rendezvous in self._sessions.values():
            rendezvous.stop()

    async def emptied(self, within: float) -> None:
        """Return when no side is left; after ``within`` seconds those that are left are dropped."""
        self._empty.clear()
        timer = self._clock.call_at(self._clock.monotonic() + within, self._empty.set)
        if self._places:
            await self._empty.wait()
        timer.cancel()
        for link in list(self._places):
            link.abort()

    def _rendezvous(self, session_id: SessionId) -> Rendezvous:
        rendezvous = self._sessions.get(session_id)
        if rendezvous is None:
            rendezvous = self._sessions[session_id] = Rendezvous(
                session_id, self._means, self._forget, draining=self._draining
            )
        return rendezvous

    def _forget(self, session_id: SessionId) -> None:
        self._sessions.pop(session_id, None)

    def _storage_changed(self, away: bool) -> None:
        for rendezvous in list(self._sessions.values()):
            rendezvous.feed(rule.DatabaseLost() if away else rule.DatabaseBack())
