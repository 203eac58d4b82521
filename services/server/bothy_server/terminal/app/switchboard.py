"""The shell of the rendezvous: one rule per session on this node, fed with what happens, obeyed in what it asks for.

It owns the links of the sides, one timer a session, and the reads and writes that the rule asks for. Terminal bytes never
pass here (``docs/architecture.md``, Data plane).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, assert_never

from bothy_server.hosts.app.api import ControlLinks
from bothy_server.identity.app.api import SessionToken, Tokens
from bothy_server.kernel.clock import Clock, Timer
from bothy_server.kernel.unit import Event, StorageUnavailable, UnitOfWork
from bothy_server.terminal.app.host_sessions import open_frame
from bothy_server.terminal.app.open_session import tell_ended
from bothy_server.terminal.app.ports import Pump, SessionRecord, SessionStore, SideLink, Signals, Telemetry
from bothy_server.terminal.app.row_reader import RowReader
from bothy_server.terminal.app.storage_watch import StorageWatch
from bothy_server.terminal.domain import rendezvous as rule
from bothy_server.terminal.domain.admission import DeviceIdentity, Identity
from bothy_server.terminal.domain.session import Row
from bothy_server.terminal.domain.signals import SessionPaired, SessionRedial
from bothy_wire.close_codes import CloseCode, fit_reason
from bothy_wire.errors import FrameError
from bothy_wire.frames import Decoder, SideAccepted, SidePaired, SideReady, SideUnpaired, encode
from bothy_wire.ids import SessionId
from bothy_wire.signing import thumbprint

_log = logging.getLogger(__name__)
_ready = Decoder(SideReady)
_ACCEPTED = encode(SideAccepted())
_HOST_PAIRED = encode(SidePaired())
_UNPAIRED = encode(SideUnpaired())


@dataclass(frozen=True, slots=True)
class Bounds:
    """Most entries on this node (keys ``terminal.max_pending_per_node``, ``terminal.max_expectations_per_node``)."""

    pending: int
    expectations: int


@dataclass(slots=True)
class _Meeting:
    session_id: SessionId
    state: rule.State
    links: dict[int, SideLink] = field(default_factory=dict)
    identities: dict[int, Identity] = field(default_factory=dict)
    record: SessionRecord | None = None
    timer: Timer | None = None


class Switchboard:
    """All rendezvous of a node. Implements ``SideEvents``; every call is made on the loop and returns at once."""

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
        tasks: asyncio.TaskGroup,
    ) -> None:
        """``tasks`` owns every read and write that is under way; ``storage_retry`` in seconds."""
        self._uow = uow
        self._tokens = tokens
        self._clock = clock
        self._pump = pump
        self._control_links = control_links
        self._signals = signals
        self._telemetry = telemetry
        self._limits = limits
        self._bounds = bounds
        self._tasks = tasks
        self._reader = RowReader(uow, tasks)
        self._storage = StorageWatch(uow, clock, storage_retry, self._storage_changed, tasks)
        self._meetings: dict[SessionId, _Meeting] = {}
        self._places: dict[SideLink, tuple[_Meeting, int]] = {}
        self._registered = 0
        self._empty = asyncio.Event()

    # ---- what happens -------------------------------------------------------------------------------------------

    def expect(self, record: SessionRecord) -> None:
        """A signal said that sides of this session may come here."""
        if record.id not in self._meetings and len(self._meetings) >= self._bounds.expectations:
            return  # E2 serves a side that comes unexpected
        self._feed(self._meeting(record.id, record), rule.Expected(to_row(record)))

    def paired_elsewhere(self, session_id: SessionId) -> None:
        """A signal said that both sides met on another node."""
        meeting = self._meetings.get(session_id)
        if meeting is not None:
            self._feed(meeting, rule.PairedElsewhere())

    def has_room(self) -> bool:
        """Whether one more lone side may come."""
        return self.pending < self._bounds.pending

    def arrived(self, session_id: SessionId, link: SideLink, identity: Identity) -> None:
        """A side proved who it is; whether it stays is decided by a read that begins now (E2a)."""
        meeting = self._meeting(session_id)
        self._registered += 1
        conn = self._registered
        meeting.links[conn] = link
        meeting.identities[conn] = identity
        self._places[link] = meeting, conn
        if isinstance(identity, DeviceIdentity):
            self._feed(meeting, rule.Arrived(conn, "device", identity.attach_seq))
        else:
            self._feed(meeting, rule.Arrived(conn, "host"))

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
        meeting, conn = place
        link.discard(False)
        self._feed(meeting, rule.Readied(conn))

    def gone(self, link: SideLink, code: int) -> None:  # noqa: ARG002 - the port tells it; no rule asks why
        """A connection ended. Compares identity: an old link never removes a newer side (E7)."""
        place = self._places.pop(link, None)
        if place is not None:
            meeting, conn = place
            self._feed(meeting, rule.Gone(conn))
            meeting.links.pop(conn, None)
            meeting.identities.pop(conn, None)
            if not self._places:
                self._empty.set()

    def stalled(self, link: SideLink) -> None:
        """The peer of a link takes nothing."""
        place = self._places.get(link)
        if place is not None:
            self._feed(place[0], rule.Stalled(place[1]))

    def changed(self, records: Iterable[SessionRecord]) -> None:
        """The event log, or a gap in it, brought these rows."""
        for record in records:
            meeting = self._meetings.get(record.id)
            if meeting is not None:
                meeting.record = record
                self._feed(meeting, rule.RowChanged(to_row(record)))

    # ---- what others ask ----------------------------------------------------------------------------------------

    def registered(self) -> set[SessionId]:
        """Sessions with anything here."""
        return set(self._meetings)

    @property
    def sides(self) -> int:
        """Sides on this node."""
        return len(self._places)

    @property
    def pairs(self) -> int:
        """Pairs on this node."""
        return sum(rule.is_paired(each.state) for each in self._meetings.values())

    @property
    def pending(self) -> int:
        """Sides without a pair."""
        return self.sides - 2 * self.pairs

    def close_all(self, code: int, reason: str) -> None:
        """Close every side, both of a pair at once; for the stop of the node."""
        for link in list(self._places):
            link.close(code, reason)

    async def emptied(self, within: float) -> None:
        """Return when no side is left, or after ``within`` seconds."""
        deadline = self._clock.monotonic() + within
        self._empty = asyncio.Event()
        timer = self._clock.call_at(deadline, self._empty.set)
        if not self._places:
            self._empty.set()
        await self._empty.wait()
        timer.cancel()

    # ---- the shell ----------------------------------------------------------------------------------------------

    def _meeting(self, session_id: SessionId, record: SessionRecord | None = None) -> _Meeting:
        meeting = self._meetings.get(session_id)
        if meeting is None:
            meeting = _Meeting(session_id, rule.State(away=self._storage.away))
            self._meetings[session_id] = meeting
        meeting.record = record or meeting.record
        return meeting

    def _feed(self, meeting: _Meeting, event: rule.Event) -> None:
        now = self._clock.monotonic()
        meeting.state, effects = rule.step(meeting.state, event, now, self._limits)
        for effect in effects:
            self._perform(meeting, effect)
        if meeting.timer is not None:
            meeting.timer.cancel()
            meeting.timer = None
        if rule.is_idle(meeting.state):
            if self._meetings.get(meeting.session_id) is meeting:
                del self._meetings[meeting.session_id]
            return
        self._meetings[meeting.session_id] = meeting
        at = rule.deadline(meeting.state, self._limits)
        if at is not None:
            meeting.timer = self._clock.call_at(at, lambda: self._feed(meeting, rule.Tick()))

    def _perform(self, meeting: _Meeting, effect: rule.Effect) -> None:
        links = meeting.links
        match effect:
            case rule.ReadRow(conn):
                self._spawn(meeting, self._read_row(meeting, conn))
            case rule.Accept(conn):
                links[conn].send_text(_ACCEPTED)
            case rule.Close(conn, code, reason):
                links[conn].close(code, fit_reason(reason))
            case rule.Check(pairing, _, _, seq):
                self._spawn(meeting, self._check(meeting, pairing, seq))
            case rule.Join(_, device, host, token):
                links[host].send_text(_HOST_PAIRED)
                links[device].send_text(encode(SidePaired(session_token=token)))
                self._pump.join(links[device], links[host])
            case rule.Part(_, stays, leaves):
                self._pump.part(links[stays], links[leaves])
                links[stays].discard(True)
                links[stays].send_text(_UNPAIRED)
            case rule.WriteDetached(paired_seq):
                self._spawn(meeting, self._write_detached(meeting, paired_seq))
            case rule.EndRow(detail):
                self._spawn(meeting, self._end_row(meeting, detail))
            case rule.Count(side):
                self._telemetry.unpaired(side)
            case rule.Redial():
                self._redial(meeting)
            case rule.TellPaired():
                if meeting.record is not None:
                    self._signals.send(SessionPaired(meeting.record.host_id, meeting.session_id))

    async def _read_row(self, meeting: _Meeting, conn: int) -> None:
        try:
            record = await self._reader.read(meeting.session_id)
        except StorageUnavailable:
            self._storage.lost()
            self._feed(meeting, rule.RowRead(conn, None, failed=True))
            return
        identity = meeting.identities.get(conn)
        if record is None or identity is None or not identity.fits(record.host_id, record.device_id, record.attach_seq):
            self._feed(meeting, rule.RowRead(conn, None))
            return
        meeting.record = record
        self._feed(meeting, rule.RowRead(conn, to_row(record)))

    async def _check(self, meeting: _Meeting, pairing: int, seq: int) -> None:
        self._feed(meeting, await self._checked(meeting.session_id, pairing, seq))

    async def _checked(self, session_id: SessionId, pairing: int, seq: int) -> rule.Checked:
        try:
            async with self._uow() as unit:
                found = await unit.of(SessionStore).pair(session_id, seq)
                if found is not None and found.reactivated:
                    unit.emit(Event("terminal_session.changed", host_id=found.record.host_id, session_id=session_id))
        except StorageUnavailable:
            self._storage.lost()
            return rule.Checked(pairing, "unavailable")
        assert found is not None, "rows of sessions are never deleted"
        record = found.record
        if found.outcome != "granted":
            return rule.Checked(pairing, found.outcome, to_row(record))
        token, _ = self._tokens.mint(
            SessionToken(
                record.id,
                record.host_id,
                record.device_id,
                record.profile,
                record.session_user,
                thumbprint(found.channel_key),
            )
        )
        return rule.Checked(pairing, "granted", to_row(record), record.paired_seq, token)

    async def _write_detached(self, meeting: _Meeting, paired_seq: int) -> None:
        try:
            async with self._uow() as unit:
                record = await unit.of(SessionStore).detach(meeting.session_id, paired_seq)
                if record is not None:
                    unit.emit(Event("terminal_session.changed", host_id=record.host_id, session_id=record.id))
        except StorageUnavailable:
            self._storage.lost()
            self._feed(meeting, rule.WriteFailed(paired_seq))

    async def _end_row(self, meeting: _Meeting, detail: rule.Ending) -> None:
        try:
            async with self._uow() as unit:
                store, ids = unit.of(SessionStore), [meeting.session_id]
                match detail:
                    case "revoked":
                        ended = await store.close(ids, "revoked")
                    case "open_timeout":
                        ended = await store.close(ids, "open_failed", "open_timeout", never_paired=True, opening=True)
                    case "start_timeout":
                        ended = await store.close(ids, "open_failed", "start_timeout", opening=True)
                    case _:
                        assert_never(detail)
                for record in ended:
                    tell_ended(unit, record)
        except StorageUnavailable:
            self._storage.lost()  # the sweep ends the row

    def _redial(self, meeting: _Meeting) -> None:
        record = meeting.record
        if record is not None and not self._control_links.send(record.host_id, open_frame(record)):
            self._signals.send(SessionRedial(record.host_id, meeting.session_id))

    def _storage_changed(self, away: bool) -> None:
        for meeting in list(self._meetings.values()):
            self._feed(meeting, rule.DatabaseLost() if away else rule.DatabaseBack())

    def _spawn(self, meeting: _Meeting, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.create_task(self._guarded(meeting, work))

    async def _guarded(self, meeting: _Meeting, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:  # noqa: BLE001 - a border that must hold
            # A defect met in one session must not take the node's other sessions with it: this one's sides leave.
            _log.exception("rendezvous failed")
            for link in list(meeting.links.values()):
                link.close(CloseCode.INTERNAL)


def to_row(record: SessionRecord) -> Row:
    """What the rule knows of a row."""
    return Row(
        record.state,
        record.attach_seq,
        record.paired_at is not None,
        record.paired_seq,
        record.close_reason,
        record.close_detail,
        record.local_confirm,
    )
