"""What a host may be called, and who decides."""

import asyncio

import pytest

from bothy_server.hosts.app.naming import Naming
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.domain.host import HostState
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.problems import Problem


@pytest.fixture
def naming(rows):
    return Naming(rows.uow)


@pytest.fixture
async def owner(rows):
    return await rows.device()


async def called(rows, host):
    async with rows.uow() as unit:
        return (await unit.of(HostStore).get(host.id)).name


async def refusal(rows, attempt):
    """The code of a refusal that left nothing behind."""
    before = await rows.content()
    with pytest.raises(Problem) as raised:
        await attempt
    assert await rows.content() == before
    return raised.value.status, raised.value.code


async def test_a_host_gets_another_name(rows, naming, owner):
    host, name = await rows.host(owner), rows.name("lab")
    session = await rows.session(owner, host)
    await naming.rename(host.id, name, owner.caller, await rows.managing(owner, host.id))
    assert await called(rows, host) == name
    assert await rows.audit(host_id=host.id, device_id=owner.id) == [("host.rename", "renamed")]
    assert await rows.events(host_id=host.id) == ["host.updated"]
    assert await rows.record(session.id) == session
    before = await rows.content()
    await naming.rename(host.id, name, owner.caller)
    assert await rows.content() == before, "the name that it has changes nothing"


async def test_a_name_is_free_when_its_host_has_another_or_is_retired(rows, naming, owner):
    host, other, retired = await rows.host(owner), await rows.host(owner), await rows.host(owner)
    attempt = naming.rename(host.id, other.name, owner.caller, await rows.managing(owner, host.id))
    assert await refusal(rows, attempt) == (409, "host_exists")
    await naming.rename(other.id, rows.name("lab"), None)
    await naming.rename(host.id, other.name, None)
    async with rows.uow() as unit:
        await unit.of(HostStore).set_state(retired.id, HostState.RETIRED)
    await naming.rename(host.id, retired.name, None)
    assert await called(rows, host) == retired.name


async def test_of_two_hosts_that_take_one_name_at_once_one_has_it(rows, naming, owner):
    hosts, name = [await rows.host(owner) for _ in range(3)], rows.name("lab")
    outcomes = await asyncio.gather(*(naming.rename(each.id, name, None) for each in hosts), return_exceptions=True)
    assert sorted(getattr(each, "code", "renamed") for each in outcomes) == ["host_exists", "host_exists", "renamed"]


async def test_owners_and_operators_rename_with_a_step_up_and_nobody_else(rows, naming, owner):
    host = await rows.host(owner)
    guest, operator = await rows.device(), await rows.device(operator=True)
    await rows.grant(guest, host)
    attempt = naming.rename(host.id, rows.name("lab"), guest.caller, await rows.managing(guest, host.id))
    assert await refusal(rows, attempt) == (404, "host_unknown")
    foreign = await rows.managing(owner, (await rows.host(owner)).id)
    for step_up_id in (None, foreign):
        attempt = naming.rename(host.id, rows.name("lab"), owner.caller, step_up_id)
        assert await refusal(rows, attempt) == (401, "step_up_required")
    name = rows.name("lab")
    await naming.rename(host.id, name, operator.caller, await rows.managing(operator, host.id))
    assert await called(rows, host) == name


@pytest.mark.parametrize("name", ["", "x" * 65, "lab\n1", "\u00e9" * 33])
async def test_a_name_that_cannot_be_is_refused(rows, naming, owner, name):
    host = await rows.host(owner)
    assert await refusal(rows, naming.rename(host.id, name, None)) == (422, "name_invalid")


async def test_a_host_that_is_not_there_or_retired_is_unknown(rows, naming, owner):
    retired = await rows.host(owner, state=HostState.RETIRED)
    for host_id in (retired.id, new_id(rows.clock.now())):
        assert await refusal(rows, naming.rename(host_id, rows.name("lab"), None)) == (404, "host_unknown")
