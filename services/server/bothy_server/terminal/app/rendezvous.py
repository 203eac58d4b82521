"""The shell of one session's rendezvous: feeds the rule, obeys its effects, keeps its timer and its links.

Rule and shell share a name: ``domain/rendezvous`` decides, this performs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ParamSpec, assert_never

from bothy_server.hosts.app.api import ControlLinks
from bothy_server.identity.app.api import SessionToken, Tokens
from bothy_server.kernel.clock import Clock, Timer
from bothy_server.kernel.unit import Event, StorageUnavailable, UnitOfWork
from bothy_server.terminal.app.earlier_decision import EarlierDecision
from bothy_server.terminal.app.host_sessions import open_frame
from bothy_server.terminal.app.open_session import tell_ended
from bothy_server.terminal.app.ports import Pump, SessionRecord, SessionStore, SideLink, Signals, Telemetry
from bothy_server.terminal.app.row_reader import RowReader
from bothy_server.terminal.app.storage_watch import StorageWatch
from bothy_server.terminal.app.traffic import Traffic
from bothy_server.terminal.domain import rendezvous as rule
from bothy_server.terminal.domain.admission import DeviceIdentity, HostIdentity, Identity
from bothy_server.terminal.domain.session import Row, SessionState
from bothy_server.terminal.domain.signals import SessionPaired, SessionRedial
from bothy_wire.close_codes import CloseCode, fit_reason
from bothy_wire.frames import SideAccepted, SidePaired, SideUnpaired, encode
from bothy_wire.ids import SessionId
from bothy_wire.signing import thumbprint

P = ParamSpec("P")

_log = logging.getLogger(__name__)
_ACCEPTED = encode(SideAccepted())
_HOST_PAIRED = encode(SidePaired())
_UNPAIRED = encode(SideUnpaired())


@dataclass(frozen=True, slots=True)
class Means:
    """What every rendezvous of a node performs its effects with. ``tasks`` owns the reads and writes under way."""

    uow: UnitOfWork
    tokens: Tokens
    clock: Clock
    pump: Pump
    control_links: ControlLinks
    signals: Signals
    telemetry: Telemetry
    limits: rule.Limits
    reader: RowReader
    storage: StorageWatch
    earlier: EarlierDecision
    traffic: Traffic
    tasks: asyncio.TaskGroup


class Rendezvous:
    """One session on this node. It is over when the rule waits for nothing and nothing is under way."""

    def __init__(
        self, session_id: SessionId, means: Means, over: Callable[[SessionId], None], *, draining: bool
    ) -> None:
        """``over`` is told when this object may be forgotten; it must be the only one of its session until then."""
        self._session_id = session_id
        self._means = means
        self._over = over
        self._state = rule.State(away=means.storage.away, draining=draining)
        self._record: SessionRecord | None = None
        self._links: dict[int, SideLink] = {}
        self._identities: dict[int, Identity] = {}
        self._host: HostIdentity | None = None
        self._timer: Timer | None = None
        self._stopped = False
        self._under_way: set[asyncio.Task[None]] = set()
        self.unmet: set[SideLink] = set()
        """Sides here that wait for the session's first pairing, or whose row is not read yet."""

    @property
    def paired(self) -> bool:
        """Whether bytes pass."""
        return rule.is_paired(self._state)

    @property
    def links(self) -> set[SideLink]:
        """The sides here, also those whose row is not read yet."""
        return set(self._links.values())

    @property
    def remembered_host(self) -> HostIdentity | None:
        """The host that was last here, where N1a lets it in although the database is away."""
        return self._host if self._decided_before() else None

    # ---- what happens -------------------------------------------------------------------------------------------

    def expect(self, record: SessionRecord) -> None:
        """Sides may come."""
        self._record = record
        self.feed(rule.Expected(to_row(record)))

    def arrive(self, conn: int, link: SideLink, identity: Identity) -> None:
        """A side proved who it is; a read that begins now decides whether it stays (E2a)."""
        self._links[conn] = link
        self._identities[conn] = identity
        self.unmet.add(link)
        if isinstance(identity, DeviceIdentity):
            self.feed(rule.Arrived(conn, "device", identity.attach_seq))
        else:
            self.feed(rule.Arrived(conn, "host"))

    def leave(self, conn: int) -> None:
        """A side is gone."""
        self.unmet.discard(self._links[conn])
        self.feed(rule.Gone(conn))
        del self._links[conn], self._identities[conn]
        self._finish()

    def change(self, record: SessionRecord) -> None:
        """The row changed."""
        self._record = record
        self.feed(rule.RowChanged(to_row(record)))

    def stop(self) -> None:
        """The node is over: nothing happens here any more."""
        self._stopped = True
        self._disarm()

    def feed(self, event: rule.Event) -> None:
        """One event through the rule, its effects in their order, then the timer."""
        if self._stopped:
            return
        try:
            self._state, effects = rule.step(self._state, event, self._means.clock.monotonic(), self._means.limits)
            for effect in effects:
                self._perform(effect)
        except Exception:  # noqa: BLE001 - a border that must hold
            self._break()
        if not self.paired:
            self._means.traffic.parted(self._session_id)
        self._arm()
        self._finish()

    # ---- what the rule asks for -----------------------------------------------------------------------------------

    def _perform(self, effect: rule.Effect) -> None:
        links, means = self._links, self._means
        match effect:
            case rule.ReadRow(conn):
                self._spawn(self._read_row, conn)
            case rule.Accept(conn):
                links[conn].send_text(_ACCEPTED)
            case rule.Close(conn, code, reason):
                links[conn].close(code, fit_reason(reason))
            case rule.Check(pairing, _, _, seq):
                self._spawn(self._check, pairing, seq)
            case rule.Join(_, device, host, token):
                links[host].send_text(_HOST_PAIRED)
                links[device].send_text(encode(SidePaired(session_token=token)))
                means.pump.join(links[device], links[host])
                means.traffic.joined(self._session_id, links[device], links[host])
                self.unmet.difference_update((links[device], links[host]))
            case rule.Part(_, stays, leaves):
                means.pump.part(links[stays], links[leaves])
                links[stays].discard(True)
                links[stays].send_text(_UNPAIRED)
            case rule.WriteDetached(paired_seq):
                self._spawn(self._write_detached, paired_seq)
            case rule.EndRow(detail):
                self._spawn(self._end_row, detail)
            case rule.Count(side):
                means.telemetry.unpaired(side)
            case rule.Redial():
                self._redial()
            case rule.TellPaired():
                assert self._record is not None
                means.signals.send(SessionPaired(self._record.host_id, self._session_id))
            case _:
                assert_never(effect)

    async def _read_row(self, conn: int) -> None:
        try:
            record = await self._means.reader.read(self._session_id)
        except StorageUnavailable:
            self._means.storage.lost()
            if not isinstance(self._identities.get(conn), HostIdentity) or not self._decided_before():
                self.feed(rule.RowRead(conn, None, failed=True))
                return
            record = self._record
        identity = self._identities.get(conn)
        if record is None or identity is None or not identity.fits(record.host_id, record.device_id, record.attach_seq):
            self.feed(rule.RowRead(conn, None))
            return
        if isinstance(identity, HostIdentity):
            self._host = identity
        self._record = record
        if record.paired_at is not None:
            self.unmet.discard(self._links[conn])  # a running session's: it may wait for hours
        self.feed(rule.RowRead(conn, to_row(record)))

    async def _check(self, pairing: int, seq: int) -> None:
        self.feed(await self._checked(pairing, seq))

    async def _checked(self, pairing: int, seq: int) -> rule.Checked:
        try:
            async with self._means.uow() as unit:
                found = await unit.of(SessionStore).pair(self._session_id, seq)
                if found is not None and found.reactivated:
                    unit.emit(_changed(found.record))
        except StorageUnavailable:
            self._means.storage.lost()
            return self._checked_before(pairing)
        assert found is not None, "rows of sessions are never deleted"
        record = found.record
        if found.outcome != "granted":
            return rule.Checked(pairing, found.outcome, to_row(record))
        token = self._mint(record, found.channel_key)
        return rule.Checked(pairing, "granted", to_row(record), record.paired_seq, token)

    def _checked_before(self, pairing: int) -> rule.Checked:
        """The answer of a check that could not be made: the earlier decision, where it still holds (N1a)."""
        if not self._decided_before():
            return rule.Checked(pairing, "unavailable")
        assert self._record is not None
        assert self._state.device is not None
        device = self._identities[self._state.device.conn]
        assert isinstance(device, DeviceIdentity)
        token = self._mint(self._record, device.channel_key)
        return rule.Checked(pairing, "stale", to_row(self._record), self._record.paired_seq, token)

    def _decided_before(self) -> bool:
        """Whether the device of a running session, let in by its row and here ever since, still has its right (N1a)."""
        return (
            self._record is not None
            and self._record.state in {SessionState.ACTIVE, SessionState.DETACHED}
            and self._state.device is not None
            and self._means.earlier.holds
        )

    def _mint(self, record: SessionRecord, channel_key: bytes) -> str:
        token, _ = self._means.tokens.mint(
            SessionToken(
                session_id=record.id,
                host_id=record.host_id,
                device_id=record.device_id,
                profile=record.profile,
                session_user=record.session_user,
                channel_thumbprint=thumbprint(channel_key),
            )
        )
        return token

    async def _write_detached(self, paired_seq: int) -> None:
        try:
            async with self._means.uow() as unit:
                record = await unit.of(SessionStore).detach(self._session_id, paired_seq)
                if record is not None:
                    unit.emit(_changed(record))
        except StorageUnavailable:
            self._means.storage.lost()
            self.feed(rule.WriteFailed(paired_seq))

    async def _end_row(self, detail: rule.Ending) -> None:
        try:
            async with self._means.uow() as unit:
                store, ids = unit.of(SessionStore), [self._session_id]
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
            self._means.storage.lost()  # the sweep ends the row

    def _redial(self) -> None:
        assert self._record is not None
        if not self._means.control_links.dial(self._record.host_id, open_frame(self._record)):
            self._means.signals.send(SessionRedial(self._record.host_id, self._session_id))

    # ---- what keeps it together -----------------------------------------------------------------------------------

    def _spawn(self, work: Callable[P, Awaitable[None]], *args: P.args, **kwargs: P.kwargs) -> None:
        task = self._means.tasks.create_task(self._contained(work, *args, **kwargs))
        self._under_way.add(task)
        task.add_done_callback(self._done)

    async def _contained(self, work: Callable[P, Awaitable[None]], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            await work(*args, **kwargs)
        except Exception:  # noqa: BLE001 - a border that must hold
            self._break()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._finish()

    def _break(self) -> None:
        """A defect that one session met must not take the node with it: this session's sides leave, all starts anew."""
        _log.exception("rendezvous failed")
        for task in self._under_way - {asyncio.current_task()}:
            task.cancel()  # what it would answer was asked by the state that is gone
        self._state = rule.State(away=self._means.storage.away, draining=self._state.draining)
        for link in list(self._links.values()):
            link.close(CloseCode.INTERNAL)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._disarm()
        at = rule.deadline(self._state, self._means.limits)
        if at is not None:
            self._timer = self._means.clock.call_at(at, lambda: self.feed(rule.Tick()))

    def _finish(self) -> None:
        if rule.is_idle(self._state) and not self._under_way and not self._links:
            self._over(self._session_id)


def to_row(record: SessionRecord) -> Row:
    """What the rule knows of a row."""
    return Row(
        state=record.state,
        attach_seq=record.attach_seq,
        paired=record.paired_at is not None,
        paired_seq=record.paired_seq,
        close_reason=record.close_reason,
        close_detail=record.close_detail,
        local_confirm=record.local_confirm,
    )


def _changed(record: SessionRecord) -> Event:
    return Event("terminal_session.changed", host_id=record.host_id, session_id=record.id)
