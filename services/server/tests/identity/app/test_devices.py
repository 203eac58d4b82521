"""Devices: who sees and ends which, and that one that is revoked can do nothing more, whatever it had under way."""

import asyncio

import pytest

from bothy_server.identity.app.api import Callers, spend_step_up
from bothy_server.identity.app.devices import Devices
from bothy_server.identity.app.invites import Invites
from bothy_server.identity.app.ports import Challenge, ChallengeStore
from bothy_server.identity.domain.act import Act
from bothy_server.identity.domain.tokens import AccessToken
from bothy_server.kernel.caller import RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.right_losses import RightLosses
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.codes import code_hash

ACCOUNT, RELAY = Act("manage_account"), Act("manage_relay")


@pytest.fixture
def invites(clock):
    return Invites(clock, 3600)


@pytest.fixture
def devices(rows, invites):
    return Devices(rows.uow, invites, RightLosses())


async def refusal(rows, attempt):
    """The code of a refusal, which left nothing behind."""
    before = await rows.content()
    with pytest.raises(Problem) as raised:
        await attempt
    assert await rows.content() == before
    return raised.value.status, raised.value.code


async def counts(rows, table, device):
    ((left,),) = await rows.run(f"SELECT count(*) FROM {table} WHERE device_id = :id", id=device.id)
    return left


# ---- seeing and inviting --------------------------------------------------------------------------------------------


async def test_a_person_sees_who_and_where_they_are(devices, rows):
    device = await rows.device(operator=True)
    own = await devices.own(device.caller)
    assert (own.id, own.person_id, own.name, own.kind, own.is_operator) == (
        device.id,
        device.person_id,
        "laptop",
        "cli",
        True,
    )


async def test_a_person_sees_their_devices_also_revoked_ones(devices, rows):
    device = await rows.device()
    other = await rows.device(device.person_id)
    await rows.device()
    await rows.run("UPDATE devices SET revoked_at = now() WHERE id = :id", id=device.id)
    listed = await devices.list(other.caller, other.person_id)
    assert [each.id for each in listed] == [device.id, other.id]
    assert [each.revoked_at is None for each in listed] == [False, True]
    assert (listed[1].channel_key, listed[1].added_by) == (other.keys.public[1], "invite")


async def test_only_an_operator_sees_somebody_elses_devices(devices, rows):
    device, stranger, operator = await rows.device(), await rows.device(), await rows.device(operator=True)
    assert await refusal(rows, devices.list(stranger.caller, device.person_id)) == (403, "operator_required")
    assert [each.id for each in await devices.list(operator.caller, device.person_id)] == [device.id]
    assert await refusal(rows, devices.list(operator.caller, rows.new_id())) == (404, "person_unknown")


async def test_a_person_invites_a_device_of_theirs(devices, rows):
    device = await rows.device()
    invited = await devices.invite(device.caller, await rows.confirmed(device, ACCOUNT))
    ((stored, used_at),) = await rows.run(
        "SELECT code_hash, used_at FROM invites WHERE person_id = :id", id=device.person_id
    )
    assert (bytes(stored), used_at, invited.life_s) == (code_hash(invited.code), None, 3600)
    assert await rows.audit(device_id=device.id, subject_person_id=device.person_id, action="invite.create") == [
        ("invite.create", "own")
    ]


@pytest.mark.parametrize("act", [RELAY, None])
async def test_an_invite_needs_a_step_up_for_the_account(devices, rows, act):
    device = await rows.device(operator=True)
    step_up_id = rows.new_id() if act is None else await rows.confirmed(device, act)
    assert await refusal(rows, devices.invite(device.caller, step_up_id)) == (401, "step_up_required")


async def test_a_repeated_invite_shows_no_code(devices, rows):
    device, repeat = await rows.device(), RepeatKey("once", bytes(32), 3600)
    step_up_id = await rows.confirmed(device, ACCOUNT)
    first, second = [await devices.invite(device.caller, step_up_id, repeat) for _ in range(2)]
    assert (second.person_id, second.code, second.life_s) == (first.person_id, None, None)
    assert len(await rows.run("SELECT id FROM invites WHERE person_id = :id", id=device.person_id)) == 1


# ---- revoking -------------------------------------------------------------------------------------------------------


async def test_a_revoked_device_loses_what_runs_and_what_is_open(devices, rows, invites):
    device = await rows.device()
    other, host = await rows.device(device.person_id), await rows.host(device)
    sessions = [await rows.session(device, host, state) for state in SessionState if state is not SessionState.CLOSED]
    kept = await rows.session(other, host, SessionState.ACTIVE)
    for each in (device, other):
        await rows.confirmed(each, RELAY)
        async with rows.uow() as unit:
            await unit.of(ChallengeStore).add(rows.new_id(), Challenge(each.keys.public[0], each.id, RELAY), 60)
    async with rows.uow() as unit:
        await invites.make(unit, device.person_id, "Robin")

    told = await devices.revoke(device.id, other.caller, await rows.confirmed(other, ACCOUNT))

    assert (told.id, told.revoked_at is not None) == (device.id, True)
    assert {(await rows.record(each.id)).close_reason for each in sessions} == {"revoked"}
    assert await rows.record(kept.id) == kept
    assert [await counts(rows, table, device) for table in ("challenges", "step_ups")] == [0, 0]
    assert await counts(rows, "challenges", other) == 1
    assert await rows.run("SELECT id FROM invites WHERE person_id = :id", id=device.person_id) == []
    actor = {"person_id": other.person_id, "device_id": other.id}
    assert await rows.audit(**actor, subject_device_id=device.id) == [("device.revoke", "revoked")]
    assert "rights.changed" in await rows.events(device_id=device.id)


async def test_an_invite_that_a_device_is_just_making_is_void_with_it(devices, rows, invites):
    device = await rows.device()
    step_up_id = await rows.confirmed(device, ACCOUNT)
    async with rows.uow() as unit:
        await spend_step_up(unit, device.caller, step_up_id, ACCOUNT)
        await invites.make(unit, device.person_id, "Robin")
        revoking = asyncio.create_task(devices.revoke(device.id))
        await rows.blocked()
    await revoking
    assert await rows.run("SELECT id FROM invites WHERE person_id = :id", id=device.person_id) == []


async def test_an_access_token_is_dead_with_its_device(devices, rows, tokens):
    device = await rows.device()
    callers, (token, _) = Callers(rows.uow, tokens), tokens.mint(AccessToken(device.person_id, device.id))
    assert await callers.caller(token) == device.caller
    await devices.revoke(device.id)
    assert await refusal(rows, callers.caller(token)) == (401, "token_invalid")


async def test_the_own_device_is_revoked_like_any(devices, rows):
    device = await rows.device()
    told = await devices.revoke(device.id, device.caller, await rows.confirmed(device, ACCOUNT))
    assert told.revoked_at is not None


@pytest.mark.parametrize(
    ("own", "act", "works"),
    [(True, ACCOUNT, True), (True, RELAY, False), (False, RELAY, True), (False, ACCOUNT, False)],
)
async def test_an_operator_revokes_with_the_step_up_for_the_relay_and_the_own_with_that_for_the_account(
    devices, rows, own, act, works
):
    operator = await rows.device(operator=True)
    target = await rows.device(operator.person_id) if own else await rows.device()
    attempt = devices.revoke(target.id, operator.caller, await rows.confirmed(operator, act))
    if works:
        assert (await attempt).revoked_at is not None
    else:
        assert await refusal(rows, attempt) == (401, "step_up_required")


async def test_somebody_elses_device_and_none_are_one_answer(devices, rows):
    device, stranger = await rows.device(), await rows.device()
    for device_id in (device.id, rows.new_id()):
        for act in (ACCOUNT, RELAY):
            attempt = devices.revoke(device_id, stranger.caller, await rows.confirmed(stranger, act))
            assert await refusal(rows, attempt) == (404, "device_unknown")


async def test_a_revoked_device_stays_as_it_is(devices, rows):
    device = await rows.device()
    other = await rows.device(device.person_id)
    first = await devices.revoke(device.id)
    before = await rows.content()
    assert await devices.revoke(device.id, other.caller, rows.new_id()) == first
    assert await rows.content() == before


async def test_of_two_devices_that_revoke_one_another_one_remains(devices, rows):
    one = await rows.device()
    two = await rows.device(one.person_id)
    attempts = [
        devices.revoke(target.id, actor.caller, await rows.confirmed(actor, ACCOUNT))
        for actor, target in ((one, two), (two, one))
    ]
    done = await asyncio.gather(*(asyncio.create_task(each) for each in attempts), return_exceptions=True)
    (refused,) = [each for each in done if isinstance(each, Problem)]
    assert refused.code == "token_invalid"
    left = await rows.run("SELECT id FROM devices WHERE person_id = :id AND revoked_at IS NULL", id=one.person_id)
    assert len(left) == 1


# ---- logging out ----------------------------------------------------------------------------------------------------


async def test_a_device_gives_itself_up_without_a_step_up(devices, rows, invites):
    """What it asked for its successor stays good."""
    device = await rows.device()
    session = await rows.session(device, await rows.host(device), SessionState.DETACHED)
    async with rows.uow() as unit:
        await invites.make(unit, device.person_id, "Robin")
    told = await devices.log_out(device.caller)
    assert told.revoked_at is not None
    assert (await rows.record(session.id)).close_reason == "revoked"
    assert len(await rows.run("SELECT id FROM invites WHERE person_id = :id", id=device.person_id)) == 1
    assert await rows.audit(device_id=device.id, subject_device_id=device.id) == [("device.logout", "logged_out")]


async def test_a_device_logs_out_once(devices, rows):
    device = await rows.device()
    await devices.log_out(device.caller)
    assert await refusal(rows, devices.log_out(device.caller)) == (401, "token_invalid")
