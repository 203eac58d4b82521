"""What a person does with sessions: open, attach, list, get, close (``docs/spec/protocol.md``, REST)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from bothy_server.hosts.app.api import Host, HostState, Presence, find_host, host_unknown
from bothy_server.identity.app.api import (
    Act,
    Made,
    StreamToken,
    Tokens,
    hold_caller,
    made_before,
    remember_made,
    right_of,
    spend_step_up,
)
from bothy_server.kernel.caller import Caller, RepeatKey
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.problems import Problem, too_often
from bothy_server.kernel.rates import Rate
from bothy_server.kernel.unit import AuditEntry, Event, Unit, UnitOfWork
from bothy_server.terminal.app.ports import NewSession, SessionPage, SessionRecord, SessionStore, SessionView
from bothy_server.terminal.domain.session import SessionState
from bothy_server.terminal.domain.signals import SessionOpen
from bothy_wire.frames import CloseReason
from bothy_wire.ids import HostId, SessionId, StepUpId


def session_unknown() -> Problem:
    """One answer for a session that does not exist and one of somebody else."""
    return Problem(404, "session_unknown", "You have no such session. `bothy sessions --all` lists yours.")


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Counts and seconds (keys ``terminal.*``)."""

    max_sessions_per_person: int
    max_sessions_per_host: int
    open_rate: Rate
    max_duration: float
    resume_window: float


@dataclass(frozen=True, slots=True)
class Opened:
    """What a device needs to dial the stream socket."""

    record: SessionRecord
    stream_token: str
    expires_in_s: float
    host_channel_key: bytes


class Sessions:
    """Use cases of a session's person. Each is one unit: a refusal writes nothing and sends nothing."""

    def __init__(
        self, uow: UnitOfWork, tokens: Tokens, clock: Clock, presence: Presence, limits: SessionLimits
    ) -> None:
        """``presence`` answers whether a host is connected to any node."""
        self._uow = uow
        self._tokens = tokens
        self._clock = clock
        self._presence = presence
        self._limits = limits
        self.opened = 0
        """Sessions that this node opened; only grows."""

    async def open(
        self,
        caller: Caller,
        host_id: HostId,
        profile: str,
        session_user: str,
        step_up_id: StepUpId,
        repeat: RepeatKey | None = None,
    ) -> Opened:
        """A new session. The checks run in the order of the specification; the step-up is spent last."""
        async with self._uow() as unit:
            made = await made_before(unit, caller, repeat)
            if made is not None:
                return await self._again(unit, made)
            await hold_caller(unit, caller)
            host = await self._reachable(unit, caller, host_id, session_user)
            _offered(host, profile, session_user)
            await self._check_limits(unit, caller, host_id)
            await spend_step_up(unit, caller, step_up_id, Act("open", host_id, profile, session_user))
            session_id = SessionId(new_id(self._clock.now()))
            new = NewSession(
                host_id, caller.person_id, caller.device_id, profile, session_user, self._limits.max_duration
            )
            record = await unit.of(SessionStore).add(session_id, new)
            _tell(unit, record, caller, "terminal.open", "opened")
            await remember_made(unit, caller, repeat, Made(record.id, record.attach_seq))
        self.opened += 1
        return self._opened(record, host)

    async def attach(
        self, caller: Caller, session_id: SessionId, step_up_id: StepUpId | None, repeat: RepeatKey | None = None
    ) -> Opened:
        """Continue a session on the caller's device; an older device side gives way."""
        async with self._uow() as unit:
            made = await made_before(unit, caller, repeat)
            if made is not None:
                return await self._again(unit, made)
            await hold_caller(unit, caller)
            row = await unit.of(SessionStore).lock(session_id)
            if row is None or row.person_id != caller.person_id:
                raise session_unknown()
            if row.state is SessionState.CLOSED:
                raise _closed(row)
            host = await self._reachable(unit, caller, row.host_id, row.session_user)
            if not self._resumes(caller, row):
                act = Act("attach", row.host_id, row.profile, row.session_user)
                await spend_step_up(unit, caller, step_up_id, act)
            record = await unit.of(SessionStore).attach(session_id, caller.device_id)
            if record is None:
                raise session_unknown()
            _tell(unit, record, caller, "terminal.attach", "attached")
            await remember_made(unit, caller, repeat, Made(record.id, record.attach_seq))
        return self._opened(record, host)

    async def list(self, caller: Caller, page: SessionPage) -> list[SessionView]:
        """The caller's sessions, newest first."""
        async with self._uow() as unit:
            return await unit.of(SessionStore).views_of_person(caller.person_id, page)

    async def get(self, caller: Caller, session_id: SessionId) -> SessionView:
        """One session of the caller."""
        async with self._uow() as unit:
            return await _view(unit, caller, session_id)

    async def close(self, caller: Caller, session_id: SessionId) -> SessionView:
        """End a session of the caller. Closing twice changes nothing."""
        async with self._uow() as unit:
            view = await _view(unit, caller, session_id)
            await end_sessions(unit, [view.record.id], "client_closed", action="terminal.close", caller=caller)
            return await _view(unit, caller, session_id)

    async def _reachable(self, unit: Unit, caller: Caller, host_id: HostId, session_user: str) -> Host:
        right = await right_of(unit, caller.person_id, host_id)
        host = await find_host(unit, host_id)
        if right is None or host is None:
            raise host_unknown()
        if not right.allows(session_user):
            raise Problem(403, "right_missing", f"You may not open a terminal as {session_user} on {host.name}.")
        if host.state is not HostState.ACTIVE:
            detail = f"{host.name} is {host.state}. Its owner can change that."
            raise Problem(409, "host_not_active", detail)
        if not self._presence.connected(host_id):
            detail = f"{host.name} is not connected. Is it switched on, and does `bothy-host run` run there?"
            raise Problem(409, "host_unavailable", detail)
        return host

    async def _check_limits(self, unit: Unit, caller: Caller, host_id: HostId) -> None:
        limits = self._limits
        of_person, on_host = await unit.of(SessionStore).live(caller.person_id, host_id)
        bounds = ((of_person, limits.max_sessions_per_person), (on_host, limits.max_sessions_per_host))
        waits = [live.ends_in_s for live, most in bounds if live.count >= most]
        if waits:
            raise Problem(
                429,
                "session_limit",
                "Too many open sessions. `bothy sessions` lists yours, `bothy close` ends one.",
                retry_after_s=max(1, math.ceil(max(waits))),
            )
        too_early_s = await unit.of(SessionStore).opened_too_early(caller.person_id, limits.open_rate)
        if too_early_s > 0:
            raise too_often(too_early_s)

    async def _again(self, unit: Unit, made: Made) -> Opened:
        """The answer of an open or attach that was carried out, with a new stream token."""
        session_id = SessionId(made.id)
        record = (await unit.of(SessionStore).rows([session_id])).get(session_id)
        host = None if record is None else await find_host(unit, record.host_id)
        if record is None or host is None:
            raise session_unknown()
        if record.state is SessionState.CLOSED:
            raise _closed(record)
        if host.channel_key is None:  # paired anew after the session was read, which ended it
            raise _closed(replace(record, close_reason="host_repaired"))
        if record.attach_seq != made.attach_seq:
            raise Problem(409, "replaced", "The session was attached again meanwhile; that attach holds it.")
        return self._opened(record, host)

    def _resumes(self, caller: Caller, row: SessionRecord) -> bool:
        if caller.device_id != row.device_id:
            return False
        if row.state is not SessionState.DETACHED or row.detached_at is None:
            return True
        return (self._clock.now() - row.detached_at).total_seconds() <= self._limits.resume_window

    def _opened(self, record: SessionRecord, host: Host) -> Opened:
        token, life = self._tokens.mint(StreamToken(record.id, record.device_id, record.attach_seq))
        assert host.channel_key is not None
        return Opened(record, token, life, host.channel_key)


def _closed(record: SessionRecord) -> Problem:
    return Problem(409, "session_closed", f"The session has ended ({record.close_reason}); open a new one.")


async def end_sessions(
    unit: Unit,
    session_ids: list[SessionId],
    reason: CloseReason,
    *,
    action: str = "terminal.terminate",
    caller: Caller | None = None,
) -> list[SessionRecord]:
    """End sessions inside a unit: rows, audit, events. Nodes learn it from the event log."""
    ended = await unit.of(SessionStore).close(session_ids, reason)
    for record in ended:
        tell_ended(unit, record, action, caller)
    return ended


def tell_ended(
    unit: Unit, record: SessionRecord, action: str = "terminal.terminate", caller: Caller | None = None
) -> None:
    """The audit entry, whose subject is the session's person, and the event of an end."""
    unit.audit(
        AuditEntry.by(
            caller,
            action,
            record.close_detail or record.close_reason or "closed",
            host_id=record.host_id,
            session_id=record.id,
            subject_person_id=record.person_id,
            subject_device_id=record.device_id,
        )
    )
    unit.emit(Event("terminal_session.changed", host_id=record.host_id, session_id=record.id))


def _tell(unit: Unit, record: SessionRecord, caller: Caller, action: str, code: str) -> None:
    unit.audit(
        AuditEntry(
            action,
            code,
            person_id=caller.person_id,
            device_id=caller.device_id,
            host_id=record.host_id,
            session_id=record.id,
        )
    )
    unit.emit(Event("terminal_session.changed", host_id=record.host_id, session_id=record.id))
    unit.stage(SessionOpen(record.host_id, record.id))


def _offered(host: Host, profile: str, session_user: str) -> None:
    users = host.profiles.get(profile)
    if users is None:
        known = ", ".join(sorted(host.profiles)) or "none"
        raise Problem(422, "profile_unknown", f"{host.name} offers no profile {profile}; it offers: {known}.")
    if session_user not in users and not any(each.startswith("@") for each in users):
        detail = f"The profile {profile} of {host.name} does not allow {session_user}; it allows: {', '.join(users) or 'none'}."
        raise Problem(422, "user_unknown", detail)


async def _view(unit: Unit, caller: Caller, session_id: SessionId) -> SessionView:
    view = await unit.of(SessionStore).view(session_id)
    if view is None or view.record.person_id != caller.person_id:
        raise session_unknown()
    return view
