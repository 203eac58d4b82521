"""How a machine becomes a host: a row, a pairing code, keys, an owner's confirmation."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from bothy_server.hosts.app import join_values
from bothy_server.hosts.app.ports import HostEvents, HostStore
from bothy_server.hosts.domain.host import Host, HostState
from bothy_server.hosts.domain.join import FIRST
from bothy_server.hosts.domain.signals import HostClose
from bothy_server.identity.app.api import (
    Act,
    Made,
    Tokens,
    add_owner,
    check_manages,
    check_operates,
    check_owns,
    find_person,
    hold_caller,
    host_unknown,
    made_before,
    remember_made,
    spend_step_up,
)
from bothy_server.kernel.caller import Caller, RepeatKey
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id, time_of
from bothy_server.kernel.names import check_name
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Event, Unit, UnitOfWork
from bothy_wire.codes import ALREADY_ISSUED, CODE_BYTES, code_hash, format_code
from bothy_wire.ids import HostId, PersonId, StepUpId
from bothy_wire.signing import Purpose, fingerprint, verify_any

_CODE_INVALID = Problem(
    401,
    "pairing_code_invalid",
    "This pairing code is unknown, used or expired. Ask the host's owner or an operator for a new one.",
)


@dataclass(frozen=True, slots=True)
class PairingLimits:
    """``code_ttl`` in seconds (key ``hosts.pairing_code_ttl``); ``pairing`` is the key ``hosts.pairing``."""

    code_ttl: float
    pairing: Literal["confirm", "auto"]


@dataclass(frozen=True, slots=True)
class Paired:
    """What a host service stores after pairing."""

    host: Host
    join: str


class Pairing:
    """Use cases around the keys of a host."""

    def __init__(
        self,
        uow: UnitOfWork,
        tokens: Tokens,
        clock: Clock,
        origins: Collection[str],
        events: HostEvents,
        limits: PairingLimits,
    ) -> None:
        """``origins``: audiences that a signature may name. ``events`` ends the sessions of a host that is paired again."""
        self._uow = uow
        self._tokens = tokens
        self._clock = clock
        self._origins = origins
        self._events = events
        self._limits = limits

    async def create(
        self,
        name: str,
        owner: str,
        caller: Caller | None,
        step_up_id: StepUpId | None = None,
        repeat: RepeatKey | None = None,
    ) -> Host:
        """A new host with its first owner, a person by id or exact name.

        No machine is paired with it yet, and that one's own person decides. ``caller`` is None on the server's command line.
        """
        check_name(name)
        host_id = HostId(new_id(self._clock.now()))
        async with self._uow() as unit:
            made = await made_before(unit, caller, repeat)
            if made is not None:
                return await _host(unit, HostId(made.id))
            await hold_caller(unit, caller)
            await check_operates(unit, caller)
            owner_id = await find_person(unit, owner)
            if not await unit.of(HostStore).add(host_id, name):
                raise Problem(409, "host_exists", f"There is a host called {name} already.")
            await add_owner(unit, owner_id, host_id)
            await spend_step_up(unit, caller, step_up_id, Act("manage_relay"))
            await remember_made(unit, caller, repeat, Made(host_id))
            unit.audit(_entry("host.create", "created", host_id, caller, owner_id))
            unit.emit(Event("host.updated", host_id=host_id))
            return await _host(unit, host_id)

    async def find(self, name: str) -> Host:
        """A host by name; for the server's own command line."""
        async with self._uow() as unit:
            host = await unit.of(HostStore).find(name)
        if host is None:
            raise host_unknown()
        return host

    async def list(self) -> list[Host]:
        """Hosts that are not retired, by name; for the server's own command line."""
        async with self._uow() as unit:
            return [host for host in await unit.of(HostStore).all() if host.state is not HostState.RETIRED]

    async def issue_code(
        self,
        host_id: HostId,
        caller: Caller | None,
        step_up_id: StepUpId | None = None,
        repeat: RepeatKey | None = None,
    ) -> tuple[str, float]:
        """A one-time code and its life in seconds. For a host that has keys this *is* the re-pairing: it loses them now.

        A repeat is answered with :data:`ALREADY_ISSUED` in place of the code, which was shown once.
        """
        code = format_code(secrets.token_bytes(CODE_BYTES))
        code_id = new_id(self._clock.now())
        async with self._uow() as unit:
            made = await made_before(unit, caller, repeat)
            if made is not None:
                age = (self._clock.now() - time_of(made.id)).total_seconds()
                return ALREADY_ISSUED, max(0.0, self._limits.code_ttl - age)
            await hold_caller(unit, caller)
            host = await unit.of(HostStore).lock(host_id)
            await check_manages(unit, caller, host_id)
            if host is None or host.state is HostState.RETIRED:
                raise host_unknown()
            await spend_step_up(unit, caller, step_up_id, Act("manage_host", host_id))
            if host.paired or host.state is not HostState.PENDING:
                await unit.of(HostStore).clear_pairing(host_id)
                await self._events.unpaired(unit, host_id, "host_repaired")
                unit.stage(HostClose(host_id))
            await unit.of(HostStore).add_code(code_id, host_id, code_hash(code), self._limits.code_ttl)
            await remember_made(unit, caller, repeat, Made(code_id))
            unit.audit(_entry("host.pairing_code", "created", host_id, caller))
            unit.emit(Event("host.updated", host_id=host_id))
        return code, self._limits.code_ttl

    async def pair(self, code: str, signing_key: bytes, channel_key: bytes, signature: bytes) -> Paired:
        """Store the keys of a machine that shows an unused code and proves its signing key."""
        hashed = code_hash(code)
        proof = (hashed, signing_key, channel_key)
        if not verify_any(signing_key, signature, Purpose.HOST_PAIR, self._origins, *proof):
            raise _CODE_INVALID
        state = HostState.ACTIVE if self._limits.pairing == "auto" else HostState.PENDING
        async with self._uow() as unit:
            host_id = await unit.of(HostStore).use_code(hashed)
            if host_id is None:
                raise _CODE_INVALID
            if not await unit.of(HostStore).store_keys(host_id, signing_key, channel_key, state, FIRST):
                raise Problem(409, "host_key_exists", "This key belongs to another host; use an empty state_dir.")
            unit.audit(AuditEntry("host.pair", "paired", host_id=host_id))
            unit.emit(Event("host.updated", host_id=host_id))
            host = await _host(unit, host_id)
        return Paired(host, join_values.offer(self._tokens, host_id, host.pairing_seq, FIRST))

    async def confirm(self, caller: Caller, host_id: HostId, shown: str, step_up_id: StepUpId) -> Host:
        """An owner compared the fingerprint on the machine with ``shown``: the host becomes active."""
        async with self._uow() as unit:
            await hold_caller(unit, caller)
            host = await unit.of(HostStore).lock(host_id)
            await check_owns(unit, caller, host_id)
            if host is None:
                raise host_unknown()
            if host.state is HostState.ACTIVE and host.channel_key and fingerprint(host.channel_key) == shown:
                return host
            if host.state is not HostState.PENDING or host.channel_key is None:
                raise Problem(409, "host_not_pending", f"The host is {host.state}, it waits for no confirmation.")
            if fingerprint(host.channel_key) != shown:
                raise Problem(
                    409,
                    "fingerprint_mismatch",
                    "The paired machine has another fingerprint. Compare with what `bothy-host pair` printed; if they"
                    " differ, somebody else used the code: issue a new one.",
                )
            await spend_step_up(unit, caller, step_up_id, Act("manage_host", host_id))
            await unit.of(HostStore).set_state(host_id, HostState.ACTIVE)
            unit.audit(_entry("host.confirm", "confirmed", host_id, caller))
            unit.emit(Event("host.updated", host_id=host_id))
            return await _host(unit, host_id)


async def _host(unit: Unit, host_id: HostId) -> Host:
    host = await unit.of(HostStore).get(host_id)
    if host is None:
        raise host_unknown()
    return host


def _entry(
    action: str, code: str, host_id: HostId, caller: Caller | None, subject: PersonId | None = None
) -> AuditEntry:
    return AuditEntry.by(caller, action, code, host_id=host_id, subject_person_id=subject)
