"""What other features may call of identity: callers, rights, and the step-up that is spent inside their unit."""

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from bothy_server.identity.app.api import (
    AccessToken,
    Act,
    Callers,
    StreamToken,
    add_owner,
    find_device,
    find_person,
    right_of,
    rights_of,
    spend_step_up,
)
from bothy_server.identity.domain.rights import Right
from bothy_server.kernel.caller import Caller
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
    assert await callers.caller(access_token(tokens, device)) == Caller(device.person_id, device.id, operator, "cli")


async def test_a_browser_whose_login_is_over_signs_in_again(callers, rows, tokens):
    browser = await rows.browser()
    token = access_token(tokens, browser)
    assert await callers.caller(token) == Caller(browser.person_id, browser.id, False, "browser")
    await rows.run("UPDATE devices SET login_until = now() WHERE id = :id", id=browser.id)
    assert await refused(callers, token) == (401, "sign_in_required")
    await rows.run("UPDATE devices SET revoked_at = now() WHERE id = :id", id=browser.id)
    assert await refused(callers, token) == (401, "token_invalid")


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
        assert await find_person(unit, str(device.person_id)) == device.person_id
        for spelling in (name.upper(), str(device.person_id).upper(), str(device.id)):
            with pytest.raises(Problem, match="person_unknown"):
                await find_person(unit, spelling)
    await rows.run("UPDATE persons SET disabled_at = now() WHERE id = :id", id=device.person_id)
    async with rows.uow() as unit:
        with pytest.raises(Problem, match="person_unknown"):
            await find_person(unit, name)
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
async def confirmed(rows):
    """A device, what it confirmed, and the step-up."""
    device = await rows.device()
    host = await rows.host(device)
    return device, Act("open", host.id, "shell", "alex-shell"), await rows.step_up(device, host)


async def spend(rows, device, act, step_up_id):
    async with rows.uow() as unit:
        await spend_step_up(unit, device.caller, step_up_id, act)


async def spent(rows, *confirmed):
    (outcome,) = await asyncio.gather(spend(rows, *confirmed), return_exceptions=True)
    assert outcome is None or (outcome.status, outcome.code) == (401, "step_up_required")
    return outcome is None


async def test_a_step_up_is_spent_once(rows, confirmed):
    assert await spent(rows, *confirmed)
    assert not await spent(rows, *confirmed)


@pytest.mark.parametrize(
    "other",
    [
        {"purpose": "attach"},
        {"purpose": "manage_host"},
        {"host_id": NOBODY},
        {"host_id": None},
        {"profile": "other"},
        {"profile": None},
        {"session_user": "robin-shell"},
    ],
)
async def test_a_step_up_counts_for_nothing_else(rows, confirmed, other):
    device, act, step_up_id = confirmed
    assert not await spent(rows, device, replace(act, **other), step_up_id)
    assert await spent(rows, *confirmed)


async def test_a_step_up_of_management_counts_for_its_host_and_purpose_only(rows, confirmed):
    device, act, _ = confirmed
    managing = Act("manage_host", act.host_id)
    step_up_id = await rows.managing(device, act.host_id)
    for other in (act, Act("manage_relay"), Act("manage_account"), Act("manage_host", NOBODY)):
        assert not await spent(rows, device, other, step_up_id)
    assert await spent(rows, device, managing, step_up_id)
    account = await rows.confirmed(device, Act("manage_account"))
    assert not await spent(rows, device, Act("manage_relay"), account)
    assert await spent(rows, device, Act("manage_account"), account)


async def test_a_step_up_counts_for_nobody_else(rows, confirmed):
    device, act, step_up_id = confirmed
    for other in (await rows.device(device.person_id), await rows.device()):
        assert not await spent(rows, other, act, step_up_id)
    for unknown in (NOBODY, None):
        assert not await spent(rows, device, act, unknown)
    assert await spent(rows, *confirmed)


async def test_a_step_up_that_is_too_old_counts_for_nothing(rows, confirmed):
    await rows.run("UPDATE step_ups SET expires_at = now() WHERE id = :id", id=confirmed[2])
    assert not await spent(rows, *confirmed)


async def test_a_unit_that_fails_spends_no_step_up(rows, confirmed):
    with pytest.raises(Problem):
        await refusing_unit(rows, *confirmed)
    assert await spent(rows, *confirmed)


async def refusing_unit(rows, device, act, step_up_id):
    async with rows.uow() as unit:
        await spend_step_up(unit, device.caller, step_up_id, act)
        raise Problem(429, "session_limit", "Too many.")


async def test_of_two_uses_at_once_exactly_one_wins(rows, confirmed):
    won = await asyncio.gather(*(spent(rows, *confirmed) for _ in range(4)))
    assert sorted(won) == [False, False, False, True]
