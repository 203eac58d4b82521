"""Disabling, enabling and retiring a host: its state, the end of its sessions and the news of it are one unit."""

from __future__ import annotations

from bothy_server.hosts.app.ports import HostEvents, HostStore
from bothy_server.hosts.domain.host import DUPLICATE_CONNECTION, OPERATOR, Host, HostAct, HostState, sources
from bothy_server.hosts.domain.signals import HostClose
from bothy_server.identity.app.api import Act, check_manages, hold_caller, host_unknown, spend_step_up
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Event, UnitOfWork
from bothy_wire.frames import CloseReason
from bothy_wire.ids import HostId, StepUpId

_ACTS: dict[HostState, HostAct] = {
    HostState.ACTIVE: "enable",
    HostState.DISABLED: "disable",
    HostState.RETIRED: "retire",
}
_ENDS: dict[HostState, CloseReason] = {
    HostState.DISABLED: "host_disabled",
    HostState.RETIRED: "host_retired",
}


class Transitions:
    """What owners and operators may do to the state of a host."""

    def __init__(self, uow: UnitOfWork, events: HostEvents) -> None:
        """``events`` ends the sessions of a host that leaves ``active``."""
        self._uow = uow
        self._events = events

    async def set_state(
        self, host_id: HostId, state: HostState, caller: Caller | None, step_up_id: StepUpId | None = None
    ) -> None:
        """Bring a host to ``active``, ``disabled`` or ``retired``; one that is there already stays as it is.

        ``caller`` is None on the server's own command line. Raises 404 ``host_unknown``, 409 ``host_state_conflict``.
        """
        async with self._uow() as unit:
            await hold_caller(unit, caller)
            host = await unit.of(HostStore).lock(host_id)
            await check_manages(unit, caller, host_id)
            if host is None:
                raise host_unknown()
            if host.state is state:
                return
            _check(host, state)
            await spend_step_up(unit, caller, step_up_id, Act("manage_host", host_id))
            reason = OPERATOR if state is HostState.DISABLED else None
            await unit.of(HostStore).set_state(host_id, state, reason)
            if state in _ENDS:
                await self._events.unpaired(unit, host_id, _ENDS[state])
                unit.stage(HostClose(host_id))
            unit.audit(AuditEntry.by(caller, "host.state", state.value, host_id=host_id))
            unit.emit(Event("host.updated", host_id=host_id))


def _check(host: Host, state: HostState) -> None:
    act = _ACTS[state]
    if host.state not in sources(act):
        raise Problem(409, "host_state_conflict", f"The host is {host.state}; it cannot be made {state}.")
    if act == "enable" and host.disabled_reason == DUPLICATE_CONNECTION:
        raise Problem(
            409,
            "host_state_conflict",
            "Two machines hold this host's key: stop the copy, then issue a new pairing code. That makes the key void.",
        )
