"""What a host is called."""

from __future__ import annotations

from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.domain.host import HostState
from bothy_server.identity.app.api import Act, check_manages, hold_caller, host_unknown, spend_step_up
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.names import check_name
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Event, UnitOfWork
from bothy_wire.ids import HostId, StepUpId


class Naming:
    """A name is for people; everything else knows a host by its id."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow

    async def rename(
        self, host_id: HostId, name: str, caller: Caller | None, step_up_id: StepUpId | None = None
    ) -> None:
        """Give a host another name; the one that it has changes nothing. ``caller`` is None on the server's command line.

        Raises 422 ``name_invalid``, 404 ``host_unknown`` (a retired one too), 409 ``host_exists``, 401 ``step_up_required``.
        """
        check_name(name)
        async with self._uow() as unit:
            await hold_caller(unit, caller)
            host = await unit.of(HostStore).lock(host_id)
            await check_manages(unit, caller, host_id)
            if host is None or host.state is HostState.RETIRED:
                raise host_unknown()
            if host.name == name:
                return
            if not await unit.of(HostStore).rename(host_id, name):
                raise Problem(409, "host_exists", f"There is a host called {name} already.")
            await spend_step_up(unit, caller, step_up_id, Act("manage_host", host_id))
            unit.audit(AuditEntry.by(caller, "host.rename", "renamed", host_id=host_id))
            unit.emit(Event("host.updated", host_id=host_id))
