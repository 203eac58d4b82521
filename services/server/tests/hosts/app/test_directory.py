"""Which hosts a person sees, and what is said about them."""

from uuid import UUID

import pytest

from bothy_kit.recorded import RecordedSignals
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.directory import Directory, Listed
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.domain.presence import Presence as Word
from bothy_server.hosts.domain.presence import PresenceLimits
from bothy_server.identity.domain.rights import Right
from bothy_server.kernel.problems import Problem

NOBODY = UUID(int=1)
OWNED = Right(owner=True)


@pytest.fixture
def presence(clock):
    return Presence(ControlLinks(), RecordedSignals(), clock, PresenceLimits(10, 3), 0.25)


@pytest.fixture
def directory(rows, presence):
    return Directory(rows.uow, presence)


async def seen(directory, device):
    return {each.host.id: each.right for each in await directory.list(device.caller)}


async def test_a_person_sees_what_they_own_or_may_use(directory, rows):
    owner, guest, stranger = [await rows.device() for _ in range(3)]
    one, other = await rows.host(owner), await rows.host(owner)
    await rows.grant(guest, other, "alex-shell")
    assert await seen(directory, owner) == {one.id: OWNED, other.id: OWNED}
    assert await seen(directory, guest) == {other.id: Right(owner=False, session_users=frozenset({"alex-shell"}))}
    assert await seen(directory, stranger) == {}


async def test_hosts_come_by_name(directory, rows):
    owner = await rows.device()
    for _ in range(3):
        await rows.host(owner)
    names = [each.host.name for each in await directory.list(owner.caller)]
    assert names == sorted(names)


async def test_an_operator_sees_all_and_gains_no_right(directory, rows):
    operator, owner = await rows.device(operator=True), await rows.device()
    foreign, own = await rows.host(owner), await rows.host(operator)
    found = await seen(directory, operator)
    assert (found[foreign.id], found[own.id]) == (None, OWNED)
    assert (await directory.get(operator.caller, foreign.id)).right is None


async def test_a_host_is_told_with_its_connection(directory, rows, presence):
    owner = await rows.device()
    host = await rows.host(owner)
    listed = await directory.get(owner.caller, host.id)
    assert (listed.host.name, listed.presence, listed.right) == (host.name, Word.OFFLINE, OWNED)
    presence.alive(rows.link(host.id))
    assert (await directory.get(owner.caller, host.id)).presence is Word.ONLINE
    assert await directory.list(owner.caller) == [Listed(listed.host, Word.ONLINE, OWNED)]


@pytest.mark.parametrize("operator", [False, True])
async def test_a_host_that_is_not_there_is_unknown(directory, rows, operator):
    device = await rows.device(operator=operator)
    with pytest.raises(Problem) as refusal:
        await directory.get(device.caller, NOBODY)
    assert (refusal.value.status, refusal.value.code) == (404, "host_unknown")


async def test_a_foreign_host_is_unknown_in_the_same_words(directory, rows):
    stranger, host = await rows.device(), await rows.host()
    details = []
    for host_id in (host.id, NOBODY):
        with pytest.raises(Problem) as refusal:
            await directory.get(stranger.caller, host_id)
        details.append((refusal.value.code, refusal.value.detail))
    assert details[0] == details[1]
