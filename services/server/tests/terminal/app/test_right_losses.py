"""What a right carried ends with it, in the unit that takes it away; what something else carries goes on."""

import asyncio

import pytest

from bothy_server.identity.app.devices import Devices
from bothy_server.identity.app.invites import Invites
from bothy_server.identity.app.ports import RightEvents
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.rates import Rate
from bothy_server.terminal.app.open_session import SessionLimits, Sessions
from bothy_server.terminal.app.right_losses import RightLosses
from bothy_server.terminal.domain.session import SessionState

OPENING, ACTIVE, DETACHED, CLOSED = SessionState


@pytest.fixture
def losses():
    made: RightEvents = RightLosses()
    return made


async def ends(rows, session):
    record = await rows.record(session.id)
    return record.state, record.close_reason


async def live(rows, device, host):
    """A session in each state that a revocation may meet."""
    return [await rows.session(device, host, state) for state in (OPENING, ACTIVE, DETACHED)]


async def test_a_revoked_device_takes_its_sessions_along_in_every_state(losses, rows):
    device = await rows.device()
    other = await rows.device(device.person_id)
    host = await rows.host(device)
    gone, kept = await live(rows, device, host), await live(rows, other, host)
    over = await rows.session(device, host, CLOSED)
    async with rows.uow() as unit:
        await losses.device_revoked(unit, device.id)
    assert [await ends(rows, each) for each in gone] == [(CLOSED, "revoked")] * 3
    assert [await rows.record(each.id) for each in kept] == kept
    assert await ends(rows, over) == (CLOSED, "client_closed")
    for each in gone:
        assert await rows.audit(session_id=each.id, action="terminal.terminate") == [("terminal.terminate", "revoked")]
        assert await rows.events(session_id=each.id) == ["terminal_session.changed"]


async def test_a_session_goes_with_the_device_that_attached_last(losses, rows):
    """It went on elsewhere: the device that opened it holds it no more."""
    device = await rows.device()
    other = await rows.device(device.person_id)
    session = await rows.session(device, await rows.host(device), ACTIVE)
    await rows.run("UPDATE terminal_sessions SET device_id = :new WHERE id = :id", new=other.id, id=session.id)
    async with rows.uow() as unit:
        await losses.device_revoked(unit, device.id)
    assert (await ends(rows, session))[0] is ACTIVE
    async with rows.uow() as unit:
        await losses.device_revoked(unit, other.id)
    assert await ends(rows, session) == (CLOSED, "revoked")


async def test_a_disabled_person_loses_every_session(losses, rows):
    device = await rows.device()
    other, neighbour = await rows.device(device.person_id), await rows.device()
    host, elsewhere = await rows.host(device, neighbour), await rows.host(device)
    gone = [*await live(rows, device, host), *await live(rows, other, elsewhere)]
    kept = await rows.session(neighbour, host, ACTIVE)
    async with rows.uow() as unit:
        await losses.person_disabled(unit, device.person_id)
    assert {await ends(rows, each) for each in gone} == {(CLOSED, "revoked")}
    assert await rows.record(kept.id) == kept


async def test_a_lost_grant_ends_what_it_covered(losses, rows):
    owner, guest = await rows.device(), await rows.device()
    host, elsewhere = await rows.host(owner), await rows.host(owner)
    for place in (host, elsewhere):
        await rows.grant(guest, place)
    gone, kept = await live(rows, guest, host), await rows.session(guest, elsewhere, ACTIVE)
    await rows.run("DELETE FROM host_grants WHERE host_id = :id", id=host.id)
    async with rows.uow() as unit:
        await losses.right_lost(unit, guest.person_id, host.id)
    assert {await ends(rows, each) for each in gone} == {(CLOSED, "revoked")}
    assert await rows.record(kept.id) == kept


async def test_what_another_right_covers_goes_on(losses, rows):
    """A grant for another user is no cover; an owner needs none."""
    owner, guest = await rows.device(), await rows.device()
    host = await rows.host(owner)
    for user in ("alex-shell", "robin-shell"):
        await rows.grant(guest, host, user)
    as_alex, as_robin = await rows.session(guest, host, ACTIVE), await rows.session(guest, host, ACTIVE)
    await rows.run(
        'UPDATE terminal_sessions SET "session_user" = :user WHERE id = :id', user="robin-shell", id=as_robin.id
    )
    of_owner = await rows.session(owner, host, ACTIVE)
    await rows.run("DELETE FROM host_grants WHERE host_id = :id AND \"session_user\" = 'alex-shell'", id=host.id)
    for person_id in (guest.person_id, owner.person_id):
        async with rows.uow() as unit:
            await losses.right_lost(unit, person_id, host.id)
    assert await ends(rows, as_alex) == (CLOSED, "revoked")
    assert (await ends(rows, as_robin))[0] is (await ends(rows, of_owner))[0] is ACTIVE


async def test_an_expired_grant_covers_nothing(losses, rows):
    owner, guest = await rows.device(), await rows.device()
    host = await rows.host(owner)
    await rows.grant(guest, host)
    session = await rows.session(guest, host, ACTIVE)
    await rows.run("UPDATE host_grants SET expires_at = now() WHERE host_id = :id", id=host.id)
    async with rows.uow() as unit:
        await losses.right_lost(unit, guest.person_id, host.id)
    assert await ends(rows, session) == (CLOSED, "revoked")


async def test_a_loss_that_is_not_decided_ends_nothing(losses, rows):
    """The ends belong to the unit: a refusal later in it takes them back."""
    device = await rows.device()
    session = await rows.session(device, await rows.host(device), ACTIVE)
    before = await rows.content()

    async def refused():
        async with rows.uow() as unit:
            await losses.device_revoked(unit, device.id)
            raise Problem(401, "step_up_required", "")

    with pytest.raises(Problem):
        await refused()
    assert await rows.content() == before
    assert (await rows.record(session.id)).state is ACTIVE


@pytest.fixture
def sessions(rows, tokens, presence):
    limits = SessionLimits(
        max_sessions_per_person=9, max_sessions_per_host=9, open_rate=Rate(99, 60), max_duration=60, resume_window=60
    )
    return Sessions(rows.uow, tokens, rows.clock, presence, limits)


@pytest.mark.parametrize("act", ["open", "attach", "attach_from_elsewhere"])
@pytest.mark.parametrize("first", ["act", "revoke"])
async def test_whoever_is_first_an_open_and_a_revocation_never_miss_each_other(
    losses, sessions, rows, clock, device, host, link, act, first
):
    """What was opened before ends; what comes after is refused. Nothing waits for ever, and nothing is left."""
    other = await rows.device(device.person_id)
    session = await rows.session(other if act == "attach_from_elsewhere" else device, host, ACTIVE)
    if act == "open":
        acting = sessions.open(device.caller, host.id, "shell", "alex-shell", await rows.step_up(device, host))
    else:
        acting = sessions.attach(device.caller, session.id, await rows.step_up(device, host, "attach"))
    revoking = Devices(rows.uow, Invites(clock, 60), losses).revoke(device.id)
    both = (acting, revoking) if first == "act" else (revoking, acting)
    done = await asyncio.gather(*(asyncio.create_task(each) for each in both), return_exceptions=True)
    refused = [each for each in done if isinstance(each, BaseException)]
    assert [each.code for each in refused] in ([], ["token_invalid"])
    live = await rows.run("SELECT id FROM terminal_sessions WHERE device_id = :id AND state <> 'closed'", id=device.id)
    assert live == []
