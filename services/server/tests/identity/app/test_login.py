"""Invites, and login by device key: what is refused, what is used once, and what it is bound to."""

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from bothy_kit.cluster import ORIGIN
from bothy_kit.rows import Keys
from bothy_server.identity.app.devices import Devices
from bothy_server.identity.app.invites import Invites
from bothy_server.identity.app.login import Login, LoginLimits, NewDevice
from bothy_server.identity.app.people import People
from bothy_server.identity.app.ports import Challenge, ChallengeStore
from bothy_server.identity.domain.act import Act
from bothy_server.identity.domain.tokens import AccessToken
from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.right_losses import RightLosses
from bothy_wire.codes import code_hash
from bothy_wire.signing import Purpose

NOBODY = UUID(int=1)
ELSEWHERE = "https://other.example.com"


@pytest.fixture
def login(rows, tokens, clock):
    return Login(rows.uow, tokens, clock, [ORIGIN, "https://second.example.com"], LoginLimits(60, 86400))


@pytest.fixture
async def invite(rows, clock):
    """A person and the code of their first device."""
    invited = await People(rows.uow, clock, Invites(clock, 3600), RightLosses()).add(
        rows.name("Robin"), is_operator=False
    )
    return invited.person_id, invited.code


def new_device(code, keys=None, *, name="laptop", origin=ORIGIN, signed_name=None):
    keys = keys or Keys()
    signature = keys.sign(Purpose.INVITE_REDEEM, code_hash(code), *keys.public, signed_name or name, origin=origin)
    return NewDevice(code, name, *keys.public, signature)


def new_browser(code, keys=None):
    keys = keys or Keys()
    signature = keys.sign(Purpose.INVITE_REDEEM, code_hash(code), *keys.public, "browser", "browser")
    return NewDevice(code, "browser", *keys.public, signature, "browser")


async def refusal(attempt):
    """The code of a refusal, which left nothing behind."""
    with pytest.raises(Problem) as raised:
        await attempt
    return raised.value.status, raised.value.code


# ---- redeeming ------------------------------------------------------------------------------------------------------


async def test_a_device_is_added_as_it_says(login, rows, invite):
    person_id, code = invite
    keys = Keys()
    redeemed = await login.redeem(new_device(code, keys, name="phone"))
    ((name, signing_key, channel_key, owner),) = await rows.run(
        "SELECT name, signing_key, channel_key, person_id FROM devices WHERE id = :id", id=redeemed.device_id
    )
    assert (name, (bytes(signing_key), bytes(channel_key)), owner) == ("phone", keys.public, person_id)


async def test_the_first_device_of_a_person_makes_their_other_invites_void(login, rows, invite, clock):
    """Who kept one would be a second person of that name. Of a person with a device each invite counts."""
    person_id, first = invite
    invites = Invites(clock, 3600)

    async def make():
        async with rows.uow() as unit:
            return (await invites.make(unit, person_id, "Robin")).code

    kept = await make()
    await login.redeem(new_device(first))
    assert await refusal(login.redeem(new_device(kept))) == (401, "invite_invalid")
    for code in [await make(), await make()]:
        assert (await login.redeem(new_device(code))).person_id == person_id


async def test_of_two_first_devices_at_once_one_wins(login, rows, invite, clock):
    person_id, first = invite
    async with rows.uow() as unit:
        second = (await Invites(clock, 3600).make(unit, person_id, "Robin")).code
    attempts = [asyncio.create_task(login.redeem(new_device(code))) for code in (first, second)]
    (refused,) = [each for each in await asyncio.gather(*attempts, return_exceptions=True) if isinstance(each, Problem)]
    assert refused.code == "invite_invalid"


async def test_a_browser_is_added_signed_in_for_a_while(login, rows, invite):
    person_id, code = invite
    keys = Keys()
    redeemed = await login.redeem(new_browser(code, keys))
    (found,) = await rows.run(
        "SELECT person_id, kind, added_by, signing_key, channel_key, login_until - now() < interval '1 day' AS soon_over"
        " FROM devices WHERE id = :id",
        id=redeemed.device_id,
    )
    assert tuple(found) == (person_id, "browser", "invite", *keys.public, True)


async def test_the_kind_of_a_device_is_signed(login, rows, invite):
    _, code = invite
    before = await rows.content()
    for bad in (replace(new_browser(code), kind="cli"), replace(new_device(code), kind="browser")):
        assert await refusal(login.redeem(bad)) == (401, "invite_invalid")
    assert await rows.content() == before


async def test_a_browser_with_keys_that_are_known_spends_no_invite(login, rows, invite):
    known = await rows.browser()
    before = await rows.content()
    for keys in (known.keys, Keys(channel_key=known.keys.channel_key)):
        assert await refusal(login.redeem(new_browser(invite[1], keys))) == (409, "device_exists")
    assert await rows.content() == before


async def test_a_code_may_be_typed_as_people_type(login, invite):
    _, code = invite
    typed = code.lower().replace("-", " ").replace("0", "o").replace("1", "l")
    assert (await login.redeem(new_device(typed))).person_id == invite[0]


async def test_a_server_may_have_several_origins(login, invite):
    await login.redeem(new_device(invite[1], origin="https://second.example.com"))


async def test_a_redeem_that_does_not_prove_the_key_is_refused(login, rows, invite):
    _, code = invite
    keys, other = Keys(), Keys()
    good = new_device(code, keys)
    before = await rows.content()
    for bad in (
        new_device(code, keys, origin=ELSEWHERE),
        new_device(code, keys, signed_name="another"),
        NewDevice(code, "laptop", other.public[0], keys.public[1], good.signature),
        NewDevice(code, "laptop", keys.public[0], other.public[1], good.signature),
        NewDevice("00000-00000", "laptop", *keys.public, good.signature),
        NewDevice(code, "laptop", *keys.public, bytes(64)),
    ):
        assert await refusal(login.redeem(bad)) == (401, "invite_invalid")
    assert await rows.content() == before
    await login.redeem(good)


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE invites SET used_at = now() WHERE person_id = :id",
        "UPDATE invites SET expires_at = now() WHERE person_id = :id",
        "UPDATE persons SET disabled_at = now() WHERE id = :id",
        "DELETE FROM invites WHERE person_id = :id",
    ],
)
async def test_an_invite_that_is_unknown_used_old_or_of_a_disabled_person_is_one_answer(login, rows, invite, spoil):
    person_id, code = invite
    await rows.run(spoil, id=person_id)
    before = await rows.content()
    assert await refusal(login.redeem(new_device(code))) == (401, "invite_invalid")
    assert await rows.content() == before


async def test_keys_that_are_known_add_no_device_and_spend_no_invite(login, rows, invite):
    known = await rows.device()
    before = await rows.content()
    same_channel_key = Keys(channel_key=known.keys.channel_key)
    for keys in (known.keys, same_channel_key):
        assert await refusal(login.redeem(new_device(invite[1], keys))) == (409, "device_exists")
    assert await rows.content() == before
    await login.redeem(new_device(invite[1]))


async def test_of_two_redeems_at_once_exactly_one_wins(login, rows, invite):
    person_id, code = invite
    results = await asyncio.gather(*(login.redeem(new_device(code)) for _ in range(3)), return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["Problem", "Problem", "Redeemed"]
    assert await rows.run("SELECT count(*) FROM devices WHERE person_id = :id", id=person_id) == [(1,)]


# ---- logging in -----------------------------------------------------------------------------------------------------


def login_signature(device, challenge, *, origin=ORIGIN, device_id=None):
    return device.keys.sign(Purpose.DEVICE_LOGIN, challenge, str(device_id or device.id), origin=origin)


async def test_a_device_gets_an_access_token(login, rows, tokens):
    device = await rows.device()
    challenge, life = await login.challenge(device.id)
    assert (len(challenge), life) == (32, 60)
    text, life = await login.token(device.id, challenge, login_signature(device, challenge))
    assert tokens.read(AccessToken, text) == AccessToken(device.person_id, device.id)
    assert life == 600
    ((used_at,),) = await rows.run("SELECT last_used_at FROM devices WHERE id = :id", id=device.id)
    assert used_at is not None


async def test_a_browser_gets_access_tokens_until_its_login_is_over(login, rows, tokens):
    browser = await rows.browser()
    challenge, _ = await login.challenge(browser.id)
    text, _ = await login.token(browser.id, challenge, login_signature(browser, challenge))
    assert tokens.read(AccessToken, text) == AccessToken(browser.person_id, browser.id)
    await rows.run("UPDATE devices SET login_until = now() WHERE id = :id", id=browser.id)
    challenge, _ = await login.challenge(browser.id)
    before = await rows.content()
    assert await refusal(login.token(browser.id, challenge, bytes(64))) == (401, "login_refused")
    attempt = login.token(browser.id, challenge, login_signature(browser, challenge))
    assert await refusal(attempt) == (401, "sign_in_required")
    assert await rows.content() == before


async def test_an_unknown_device_gets_a_challenge_like_any_other(login, rows):
    device = await rows.device()
    before = await rows.content()
    unknown, life = await login.challenge(NOBODY)
    assert await rows.content() == before
    known, same_life = await login.challenge(device.id)
    assert (len(unknown), life) == (len(known), same_life)
    assert await refusal(login.token(NOBODY, unknown, bytes(64))) == (401, "login_refused")


async def test_a_login_that_does_not_prove_the_key_is_refused(login, rows):
    device, other = await rows.device(), await rows.device()
    challenge, _ = await login.challenge(device.id)
    others, _ = await login.challenge(other.id)
    before = await rows.content()
    good = login_signature(device, challenge)
    for device_id, value, signature in (
        (device.id, challenge, login_signature(device, challenge, origin=ELSEWHERE)),
        (device.id, challenge, login_signature(other, challenge, device_id=device.id)),
        (device.id, challenge, login_signature(device, challenge, device_id=other.id)),
        (device.id, challenge, bytes(64)),
        (device.id, bytes(32), login_signature(device, bytes(32))),
        (device.id, others, login_signature(device, others)),
        (other.id, challenge, login_signature(other, challenge)),
        (NOBODY, challenge, good),
    ):
        assert await refusal(login.token(device_id, value, signature)) == (401, "login_refused")
    assert await rows.content() == before
    await login.token(device.id, challenge, good)


async def test_a_challenge_of_a_step_up_signs_nobody_in(login, rows):
    device = await rows.device()
    host = await rows.host(device)
    value = bytes(range(32))
    async with rows.uow() as unit:
        await unit.of(ChallengeStore).add(
            rows.new_id(), Challenge(value, device.id, Act("open", host.id, "shell", "alex-shell")), 60
        )
    assert await refusal(login.token(device.id, value, login_signature(device, value))) == (401, "login_refused")


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE challenges SET expires_at = now() WHERE device_id = :id",
        "UPDATE challenges SET used_at = now() WHERE device_id = :id",
    ],
)
async def test_a_challenge_too_old_or_used_is_the_same_refusal(login, rows, spoil):
    device = await rows.device()
    challenge, _ = await login.challenge(device.id)
    await rows.run(spoil, id=device.id)
    before = await rows.content()
    attempt = login.token(device.id, challenge, login_signature(device, challenge))
    assert await refusal(attempt) == (401, "login_refused")
    assert await rows.content() == before


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        ("UPDATE devices SET revoked_at = now() WHERE id = :id", "device_revoked"),
        (
            "UPDATE persons SET disabled_at = now() WHERE id = (SELECT person_id FROM devices WHERE id = :id)",
            "person_disabled",
        ),
    ],
)
async def test_only_who_holds_the_key_hears_why_a_device_may_not_act(login, rows, spoil, code):
    device, stranger = await rows.device(), await rows.device()
    challenge, _ = await login.challenge(device.id)
    await rows.run(spoil, id=device.id)
    before = await rows.content()
    by_others = login_signature(stranger, challenge, device_id=device.id)
    assert await refusal(login.token(device.id, challenge, by_others)) == (401, "login_refused")
    assert await refusal(login.token(device.id, challenge, login_signature(device, challenge))) == (401, code)
    assert await rows.content() == before


async def test_of_two_logins_with_one_challenge_exactly_one_wins(login, rows):
    device = await rows.device()
    challenge, _ = await login.challenge(device.id)
    signature = login_signature(device, challenge)
    attempts = [login.token(device.id, challenge, signature) for _ in range(3)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["Problem", "Problem", "tuple"]


async def test_a_device_signs_in_while_it_is_revoked(login, rows, clock):
    """Both need its row and its challenges; the revocation is never the one that fails."""
    devices = Devices(rows.uow, Invites(clock, 3600), RightLosses())
    for _ in range(15):
        device = await rows.device()
        kept = await rows.device(device.person_id)
        challenge, _ = await login.challenge(device.id)
        confirmed = await rows.confirmed(kept, Act("manage_account"))
        signed_in, revoked = await asyncio.gather(
            login.token(device.id, challenge, login_signature(device, challenge)),
            devices.revoke(device.id, kept.caller, confirmed),
            return_exceptions=True,
        )
        assert revoked.revoked_at is not None
        assert isinstance(signed_in, tuple) or signed_in.code in {"login_refused", "device_revoked"}
