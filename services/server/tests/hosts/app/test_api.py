"""What the terminal may call of hosts."""

from uuid import UUID

from bothy_kit.rows import PROFILES
from bothy_server.hosts.app.api import HostState, find_host

NOBODY = UUID(int=1)


async def test_hosts_are_found_as_they_are_now(rows):
    one, other = await rows.host(), await rows.host(state=HostState.PENDING, local_confirm=True)
    async with rows.uow() as unit:
        found = await find_host(unit, one.id)
        assert (found.name, found.state, found.boot_id) == (one.name, HostState.ACTIVE, one.boot_id)
        assert (found.signing_key, found.channel_key) == one.keys.public
        assert {name: list(users) for name, users in found.profiles.items()} == PROFILES
        assert await find_host(unit, NOBODY) is None
        waiting = await find_host(unit, other.id)
    assert (waiting.state, waiting.require_local_confirm) == (HostState.PENDING, True)
