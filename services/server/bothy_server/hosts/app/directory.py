"""The hosts that a person may see."""

from __future__ import annotations

from dataclasses import dataclass

from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.domain import presence
from bothy_server.hosts.domain.host import Host
from bothy_server.identity.app.api import Right, host_unknown, rights_of
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.unit import UnitOfWork
from bothy_wire.ids import HostId


@dataclass(frozen=True, slots=True)
class Listed:
    """A host, its connection, and what the caller may do on it (None: an operator without a right)."""

    host: Host
    presence: presence.Presence
    right: Right | None


class Directory:
    """Reads only. An operator sees every host, and gains no right by that."""

    def __init__(self, uow: UnitOfWork, presence: Presence) -> None:
        """``presence`` is this node's view."""
        self._uow = uow
        self._presence = presence

    async def list(self, caller: Caller) -> list[Listed]:
        """By name."""
        async with self._uow() as unit:
            rights = await rights_of(unit, caller.person_id)
            store = unit.of(HostStore)
            hosts = await store.all() if caller.is_operator else await store.many(rights)
        return [Listed(host, self._presence.of(host.id), rights.get(host.id)) for host in hosts]

    async def get(self, caller: Caller, host_id: HostId) -> Listed:
        """404 ``host_unknown`` for a host that the caller has nothing to do with."""
        async with self._uow() as unit:
            rights = await rights_of(unit, caller.person_id)
            host = await unit.of(HostStore).get(host_id)
        if host is None or not (caller.is_operator or host_id in rights):
            raise host_unknown()
        return Listed(host, self._presence.of(host_id), rights.get(host_id))
