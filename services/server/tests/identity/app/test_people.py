"""Persons: who is added and invited, who may decide that, and what ends with whom."""

import asyncio

import pytest

from bothy_kit.cluster import ORIGIN
from bothy_kit.rows import Keys
from bothy_server.identity.app.api import spend_step_up
from bothy_server.identity.app.invites import Invites
from bothy_server.identity.app.login import Login, LoginLimits, NewDevice
from bothy_server.identity.app.people import People, PeopleStore
from bothy_server.identity.app.ports import Challenge, ChallengeStore
from bothy_server.identity.domain.act import Act
from bothy_server.kernel.caller import RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.right_losses import RightLosses
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.codes import code_hash
from bothy_wire.signing import Purpose

RELAY = Act("manage_relay")


@pytest.fixture
def people(rows, clock):
    return People(rows.uow, clock, Invites(clock, 3600), RightLosses())


@pytest.fixture
async def operator(rows):
    """The only one: those of other tests are operators no more."""
    await rows.run("UPDATE persons SET is_operator = false")
    return await rows.device(operator=True)


async def refusal(rows, attempt):
    """The code of a refusal, which left nothing behind."""
    before = await rows.content()
    with pytest.raises(Problem) as raised:
        await attempt
    assert await rows.content() == before
    return raised.value.status, raised.value.code


async def invites(rows, person_id):
    return await rows.run("SELECT code_hash FROM invites WHERE person_id = :id AND used_at IS NULL", id=person_id)


# ---- adding and inviting --------------------------------------------------------------------------------------------


async def test_a_person_is_added_with_an_invite(people, rows):
    name = rows.name("Robin")
    invited = await people.add(name, is_operator=True)
    assert (invited.name, invited.life_s) == (name, 3600)
    assert await invites(rows, invited.person_id) == [(code_hash(invited.code),)]
    assert (await people.find(name)).is_operator
    assert await rows.audit(subject_person_id=invited.person_id) == [("person.add", "operator")]


async def test_an_operator_adds_a_person_with_a_step_up(people, rows, operator):
    step_up_id = await rows.confirmed(operator, RELAY)
    invited = await people.add(rows.name("Robin"), is_operator=False, caller=operator.caller, step_up_id=step_up_id)
    actor = {"person_id": operator.person_id, "device_id": operator.id}
    assert await rows.audit(**actor, subject_person_id=invited.person_id) == [("person.add", "person")]
    again = people.add(rows.name("Robin"), is_operator=False, caller=operator.caller, step_up_id=step_up_id)
    assert await refusal(rows, again) == (401, "step_up_required")


@pytest.mark.parametrize("act", [Act("manage_account"), None])
async def test_a_person_is_not_added_without_the_right_step_up(people, rows, operator, act):
    step_up_id = None if act is None else await rows.confirmed(operator, act)
    attempt = people.add(rows.name("Robin"), is_operator=False, caller=operator.caller, step_up_id=step_up_id)
    assert await refusal(rows, attempt) == (401, "step_up_required")


async def test_only_operators_manage_persons(people, rows, operator):
    person = await rows.device()
    mine = await rows.confirmed(person, RELAY)
    for attempt in (
        people.list(person.caller),
        people.add(rows.name("Robin"), is_operator=True, caller=person.caller, step_up_id=mine),
        people.invite(person.person_id, person.caller, mine),
        people.set_state(operator.person_id, enabled=False, caller=person.caller, step_up_id=mine),
    ):
        assert await refusal(rows, attempt) == (403, "operator_required")


async def test_a_name_is_one_persons_also_when_they_are_disabled(people, rows):
    name = rows.name("Robin")
    invited = await people.add(name, is_operator=False)
    await people.set_state(invited.person_id, enabled=False)
    assert await refusal(rows, people.add(name, is_operator=True)) == (409, "person_exists")


async def test_a_name_that_no_screen_can_show_is_refused(people, rows):
    assert await refusal(rows, people.add("Ro\x1bbin", is_operator=False)) == (422, "name_invalid")


async def test_who_never_had_a_device_is_invited_again(people, rows, operator):
    invited = await people.add(rows.name("Robin"), is_operator=False)
    again = await people.invite(invited.person_id, operator.caller, await rows.confirmed(operator, RELAY))
    assert (again.person_id, again.name) == (invited.person_id, invited.name)
    assert again.code != invited.code
    assert await rows.audit(person_id=operator.person_id, subject_person_id=invited.person_id) == [
        ("invite.create", "created")
    ]


@pytest.mark.parametrize("revoked", [False, True])
async def test_an_operator_cannot_become_somebody_by_an_invite(people, rows, operator, revoked):
    """The command line of the server can: who has that has all."""
    person = await rows.device()
    if revoked:
        await rows.run("UPDATE devices SET revoked_at = now() WHERE id = :id", id=person.id)
    step_up_id = await rows.confirmed(operator, RELAY)
    attempt = people.invite(person.person_id, operator.caller, step_up_id)
    assert await refusal(rows, attempt) == (409, "person_has_device")
    await people.invite(person.person_id)
    assert len(await invites(rows, person.person_id)) == 1


async def test_nobody_and_who_is_disabled_are_not_invited(people, rows, operator):
    step_up_id = await rows.confirmed(operator, RELAY)
    unknown = people.invite(rows.new_id(), operator.caller, step_up_id)
    assert await refusal(rows, unknown) == (404, "person_unknown")
    assert await refusal(rows, people.find("Nobody")) == (404, "person_unknown")
    person_id = await rows.person()
    await people.set_state(person_id, enabled=False)
    assert await refusal(rows, people.invite(person_id)) == (409, "person_disabled")


async def test_a_repeat_makes_nothing_and_shows_no_code(people, rows, operator):
    """It needs no second step-up either: that was spent by the first."""
    name, repeat = rows.name("Robin"), RepeatKey("once", bytes(32), 3600)
    step_up_id = await rows.confirmed(operator, RELAY)
    first = await people.add(name, is_operator=False, caller=operator.caller, step_up_id=step_up_id, repeat=repeat)
    second = await people.add(name, is_operator=False, caller=operator.caller, step_up_id=step_up_id, repeat=repeat)
    assert (second.person_id, second.name, second.code, second.life_s) == (first.person_id, name, None, None)
    repeat = RepeatKey("again", bytes(32), 3600)
    step_up_id = await rows.confirmed(operator, RELAY)
    invited = [await people.invite(first.person_id, operator.caller, step_up_id, repeat) for _ in range(2)]
    assert [each.code is None for each in invited] == [False, True]
    assert len(await invites(rows, first.person_id)) == 2


async def test_persons_are_listed_with_what_an_operator_wants_to_know(people, rows, operator):
    device = await rows.device()
    for _ in range(2):
        await rows.device(device.person_id)
    await rows.run("UPDATE devices SET revoked_at = now(), last_used_at = now() WHERE id = :id", id=device.id)
    await people.set_state(device.person_id, enabled=False)
    nobody = await rows.person()
    listed = await people.list(operator.caller)
    assert [each.name for each in listed] == sorted(each.name for each in listed)
    found = {each.id: each for each in listed}
    told = found[device.person_id]
    assert (told.devices, told.had_devices, told.is_operator) == (2, True, False)
    assert told.last_used_at is not None
    assert told.disabled_at is not None
    new = found[nobody]
    assert (new.devices, new.had_devices, new.last_used_at, new.disabled_at) == (0, False, None, None)
    assert found[operator.person_id].is_operator


# ---- disabling ------------------------------------------------------------------------------------------------------


async def test_who_is_disabled_loses_what_runs_and_what_is_open(people, rows, operator):
    device, neighbour = await rows.device(), await rows.device()
    host = await rows.host(device, neighbour)
    sessions = [await rows.session(device, host, state) for state in SessionState if state is not SessionState.CLOSED]
    kept = await rows.session(neighbour, host)
    for each in (device, neighbour):
        await people.invite(each.person_id)
        await rows.confirmed(each, Act("manage_account"))
        async with rows.uow() as unit:
            await unit.of(ChallengeStore).add(rows.new_id(), Challenge(each.keys.public[0], each.id, RELAY), 60)
    step_up_id = await rows.confirmed(operator, RELAY)

    told = await people.set_state(device.person_id, enabled=False, caller=operator.caller, step_up_id=step_up_id)

    assert told.disabled_at is not None
    assert {(await rows.record(each.id)).close_reason for each in sessions} == {"revoked"}
    assert await rows.record(kept.id) == kept
    for table in ("invites", "step_ups", "challenges"):
        ((left, others),) = await rows.run(
            f"SELECT count(*) FILTER (WHERE person_id = :id), count(*) FILTER (WHERE person_id = :other) FROM {table}",
            id=device.person_id,
            other=neighbour.person_id,
        )
        assert (table, left, others) == (table, 0, 1)
    actor = {"person_id": operator.person_id, "device_id": operator.id}
    assert await rows.audit(**actor, subject_person_id=device.person_id) == [("person.state", "disabled")]
    assert "rights.changed" in await rows.events(person_id=device.person_id)


async def test_an_invite_that_a_person_is_just_making_is_void_with_them(people, rows, clock):
    """Also once they are enabled again."""
    device = await rows.device()
    step_up_id = await rows.confirmed(device, Act("manage_account"))
    async with rows.uow() as unit:
        await spend_step_up(unit, device.caller, step_up_id, Act("manage_account"))
        await Invites(clock, 3600).make(unit, device.person_id, "Robin")
        disabling = asyncio.create_task(people.set_state(device.person_id, enabled=False))
        await rows.blocked()
    await disabling
    assert await invites(rows, device.person_id) == []


async def test_a_login_that_was_approved_for_who_is_disabled_is_forgotten(people, rows):
    device = await rows.device()
    await rows.run(
        "INSERT INTO device_logins (id, device_code_hash, user_code_hash, name, signing_key, channel_key, expires_at,"
        " decided_at, person_id, approved, device_id) VALUES (:id, sha256('a'), sha256('b'), 'phone', sha256('c'),"
        " sha256('d'), now() + interval '1 hour', now(), :person_id, true, :id)",
        id=device.id,
        person_id=device.person_id,
    )
    await people.set_state(device.person_id, enabled=False)
    assert await rows.run("SELECT id FROM device_logins WHERE person_id = :id", id=device.person_id) == []


async def test_who_is_enabled_again_has_devices_and_nothing_else_of_before(people, rows):
    device = await rows.device()
    session = await rows.session(device, await rows.host(device), SessionState.ACTIVE)
    await people.set_state(device.person_id, enabled=False)
    told = await people.set_state(device.person_id, enabled=True)
    assert (told.disabled_at, told.devices) == (None, 1)
    assert (await rows.record(session.id)).close_reason == "revoked"
    assert await rows.audit(subject_person_id=device.person_id) == [
        ("terminal.terminate", "revoked"),
        ("person.state", "disabled"),
        ("person.state", "enabled"),
    ]


async def test_the_state_that_a_person_has_changes_nothing_and_spends_nothing(people, rows, operator):
    device = await rows.device()
    step_up_id = await rows.confirmed(operator, RELAY)
    before = await rows.content()
    await people.set_state(device.person_id, enabled=True, caller=operator.caller, step_up_id=step_up_id)
    assert await rows.content() == before


async def test_disabling_nobody_is_refused(people, rows, operator):
    step_up_id = await rows.confirmed(operator, RELAY)
    attempt = people.set_state(rows.new_id(), enabled=False, caller=operator.caller, step_up_id=step_up_id)
    assert await refusal(rows, attempt) == (404, "person_unknown")


# ---- operators ------------------------------------------------------------------------------------------------------


async def test_the_last_operator_cannot_disable_themselves(people, rows, operator):
    """One who is disabled is none to count on; the command line may, and makes another."""
    other = await rows.device(operator=True)
    await people.set_state(other.person_id, enabled=False)
    step_up_id = await rows.confirmed(operator, RELAY)
    attempt = people.set_state(operator.person_id, enabled=False, caller=operator.caller, step_up_id=step_up_id)
    assert await refusal(rows, attempt) == (409, "last_operator")
    assert (await people.set_state(operator.person_id, enabled=False)).disabled_at is not None


async def test_an_operator_among_several_may_leave(people, rows, operator):
    await rows.device(operator=True)
    step_up_id = await rows.confirmed(operator, RELAY)
    told = await people.set_state(operator.person_id, enabled=False, caller=operator.caller, step_up_id=step_up_id)
    assert told.disabled_at is not None


async def test_of_two_operators_who_disable_one_another_one_remains(people, rows, operator):
    other = await rows.device(operator=True)
    attempts = [
        people.set_state(
            target.person_id, enabled=False, caller=actor.caller, step_up_id=await rows.confirmed(actor, RELAY)
        )
        for actor, target in ((operator, other), (other, operator))
    ]
    done = await asyncio.gather(*(asyncio.create_task(each) for each in attempts), return_exceptions=True)
    (refused,) = [each for each in done if isinstance(each, Problem)]
    assert refused.code == "operator_required"
    assert len(await rows.run("SELECT id FROM persons WHERE is_operator AND disabled_at IS NULL")) == 1


async def test_who_is_no_operator_any_more_decides_nothing(people, rows, operator):
    """Their access token may still say otherwise."""
    person_id = await rows.person()
    step_up_id = await rows.confirmed(operator, RELAY)
    assert not (await people.set_operator(operator.person_id, is_operator=False)).is_operator
    attempt = people.set_state(person_id, enabled=False, caller=operator.caller, step_up_id=step_up_id)
    assert await refusal(rows, attempt) == (403, "operator_required")
    assert (await people.set_operator(operator.person_id, is_operator=True)).is_operator
    assert await rows.audit(subject_person_id=operator.person_id) == [
        ("person.state", "no_operator"),
        ("person.state", "operator"),
    ]


async def test_making_an_operator_of_one_changes_nothing(people, rows, operator):
    before = await rows.content()
    assert (await people.set_operator(operator.person_id, is_operator=True)).is_operator
    assert await rows.content() == before


async def test_an_operator_cannot_invite_a_device_for_who_is_just_joining(people, rows, tokens, clock, operator):
    """Else the invite would be of somebody who works already, and whoever holds it could become them."""
    login = Login(rows.uow, tokens, clock, [ORIGIN], LoginLimits(60, 3600))
    first = await people.add(rows.name("Robin"), is_operator=False)
    step_up_id = await rows.confirmed(operator, RELAY)
    keys = Keys()
    signature = keys.sign(Purpose.INVITE_REDEEM, code_hash(first.code), *keys.public, "laptop")
    async with rows.uow() as unit:
        await unit.of(PeopleStore).lock(first.person_id)  # whoever joins holds it, too
        joining = asyncio.create_task(login.redeem(NewDevice(first.code, "laptop", *keys.public, signature)))
        await rows.blocked()
        inviting = asyncio.create_task(people.invite(first.person_id, operator.caller, step_up_id))
        await rows.blocked(2)
    assert (await joining).person_id == first.person_id
    (outcome,) = await asyncio.gather(inviting, return_exceptions=True)
    assert (outcome.status, outcome.code) == (409, "person_has_device")
    assert await invites(rows, first.person_id) == []
