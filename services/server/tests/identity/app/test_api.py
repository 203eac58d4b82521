"""What other features may call of identity: callers, rights, and the step-up that is spent inside their unit."""

import asyncio
from uuid import UUID

import pytest

from bothy_server.identity.app.api import (
    AccessToken,
    Caller,
    Callers,
    StreamToken,
    add_owner,
    consume_step_up,
    find_device,
    find_person,
    right_of,
    rights_of,
)
from bothy_server.identity.domain.rights import Right
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import StorageUnavailable

NOBODY = UUID(int=1)
FOR_EVER = 1e6


@pytest.fixture
def callers(rows, tokens):
    return Callers(rows.uow, tokens)


def access_token(tokens, device):
    return tokens.mint(AccessToken(device.person_id, device.id))[0]


async def refused(callers, token):
    with pytest.raises(Problem) as refusal:
        await callers.caller(token)
    return refusal.value.status, refusal.value.code


@pytest.mark.parametrize("operator", [False, True])
async def test_an_access_token_names_the_caller(callers, rows, tokens, operator):
    device = await rows.device(operator=operator)
    assert await callers.caller(access_token(tokens, device)) == Caller(device.person_id, device.id, operator)


@pytest.mark.parametrize("token", [None, "", "x", "a.b.c"])
async def test_no_token_and_nonsense_are_refused_without_a_read(callers, rows, token):
    assert await refused(callers, token) == (401, "token_invalid")
    assert rows.units == 0


async def test_a_token_of_another_kind_or_too_old_is_refused(callers, rows, tokens, clock):
    device = await rows.device()
    stream_token, _ = tokens.mint(StreamToken(NOBODY, device.id, 1))
    assert await refused(callers, stream_token) == (401, "token_invalid")
    token = access_token(tokens, device)
    clock.advance(FOR_EVER)
    assert await refused(callers, token) == (401, "token_invalid")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE devices SET revoked_at = now() WHERE id = :id",
        "UPDATE persons SET disabled_at = now() WHERE id = (SELECT person_id FROM devices WHERE id = :id)",
    ],
)
async def test_a_token_outlives_neither_its_device_nor_its_person(callers, rows, tokens, change):
    device = await rows.device()
    token = access_token(tokens, device)
    await rows.run(change, id=device.id)
    assert await refused(callers, token) == (401, "token_invalid")


async def test_a_token_of_a_device_that_is_not_in_the_database_is_refused(callers, tokens):
    token, _ = tokens.mint(AccessToken(NOBODY, NOBODY))
    assert await refused(callers, token) == (401, "token_invalid")


async def test_a_database_that_is_away_is_no_refusal(callers, rows, tokens):
    device = await rows.device()
    rows.away = True
    with pytest.raises(StorageUnavailable):
        await callers.caller(access_token(tokens, device))


async def test_persons_and_devices_are_found(rows):
    device = await rows.device()
    ((name,),) = await rows.run("SELECT name FROM persons WHERE id = :id", id=device.person_id)
    async with rows.uow() as unit:
        assert (await find_device(unit, device.id)).person_name == name
        assert await find_device(unit, NOBODY) is None
        assert await find_person(unit, name) == device.person_id
        assert await find_person(unit, name.upper()) is None
    await rows.run("UPDATE persons SET disabled_at = now() WHERE id = :id", id=device.person_id)
    async with rows.uow() as unit:
        assert await find_person(unit, name) is None
        assert (await find_device(unit, device.id)).usable is False


async def test_rights_are_owned_or_granted(rows):
    owner, guest, stranger = [await rows.device() for _ in range(3)]
    host, other = await rows.host(owner), await rows.host(owner)
    for session_user in ("alex-shell", "robin-shell"):
        await rows.grant(guest, host, session_user)
    async with rows.uow() as unit:
        await add_owner(unit, owner.person_id, host.id)
        assert await rights_of(unit, owner.person_id) == {host.id: Right(owner=True), other.id: Right(owner=True)}
        assert await right_of(unit, owner.person_id, other.id) == Right(owner=True)
        granted = Right(owner=False, session_users=frozenset({"alex-shell", "robin-shell"}))
        assert await rights_of(unit, guest.person_id) == {host.id: granted}
        assert await right_of(unit, guest.person_id, other.id) is None
        assert await rights_of(unit, stranger.person_id) == {}


# ---- step-ups -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def act(rows):
    """What a step-up confirms, as arguments of ``consume_step_up``; and the step-up."""
    device = await rows.device()
    host = await rows.host(device)
    wanted = {
        "caller": device.caller,
        "purpose": "open",
        "host_id": host.id,
        "profile": "shell",
        "session_user": "alex-shell",
    }
    return await rows.step_up(device, host), wanted


async def consumed(rows, step_up_id, wanted):
    async with rows.uow() as unit:
        return await consume_step_up(unit, step_up_id, **wanted)


async def test_a_step_up_is_spent_once(rows, act):
    step_up_id, wanted = act
    assert await consumed(rows, step_up_id, wanted)
    assert not await consumed(rows, step_up_id, wanted)


@pytest.mark.parametrize(
    "other", [{"purpose": "attach"}, {"host_id": NOBODY}, {"profile": "other"}, {"session_user": "robin-shell"}]
)
async def test_a_step_up_counts_for_nothing_else(rows, act, other):
    step_up_id, wanted = act
    assert not await consumed(rows, step_up_id, wanted | other)
    assert await consumed(rows, step_up_id, wanted)


async def test_a_step_up_counts_for_nobody_else(rows, act):
    step_up_id, wanted = act
    of_the_same_person = await rows.device(wanted["caller"].person_id)
    stranger = await rows.device()
    for other in (of_the_same_person, stranger):
        assert not await consumed(rows, step_up_id, wanted | {"caller": other.caller})
    assert not await consumed(rows, NOBODY, wanted)
    assert await consumed(rows, step_up_id, wanted)


async def test_a_step_up_that_is_too_old_counts_for_nothing(rows, act):
    step_up_id, wanted = act
    await rows.run("UPDATE step_ups SET expires_at = now() WHERE id = :id", id=step_up_id)
    assert not await consumed(rows, step_up_id, wanted)


async def test_a_unit_that_fails_spends_no_step_up(rows, act):
    step_up_id, wanted = act
    with pytest.raises(Problem):
        await refusing_unit(rows, step_up_id, wanted)
    assert await consumed(rows, step_up_id, wanted)


async def refusing_unit(rows, step_up_id, wanted):
    async with rows.uow() as unit:
        assert await consume_step_up(unit, step_up_id, **wanted)
        raise Problem(429, "session_limit", "Too many.")


async def test_of_two_uses_at_once_exactly_one_wins(rows, act):
    step_up_id, wanted = act
    won = await asyncio.gather(*(consumed(rows, step_up_id, wanted) for _ in range(4)))
    assert sorted(won) == [False, False, False, True]
