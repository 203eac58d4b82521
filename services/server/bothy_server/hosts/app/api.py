"""What the terminal may call of hosts."""

from __future__ import annotations

from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.ports import ControlLink, HostStore
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.domain.host import Host, HostState
from bothy_server.hosts.domain.host import close_code as refusal_of
from bothy_server.identity.app.api import host_unknown
from bothy_server.kernel.unit import Unit
from bothy_wire.ids import HostId

__all__ = [
    "ControlLink",
    "ControlLinks",
    "Host",
    "HostState",
    "Presence",
    "find_host",
    "host_unknown",
    "refusal_of",
]


async def find_host(unit: Unit, host_id: HostId) -> Host | None:
    """One host as it is now."""
    return await unit.of(HostStore).get(host_id)
