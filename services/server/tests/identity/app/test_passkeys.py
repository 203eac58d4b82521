"""A person's passkeys: who may add one, what is refused, and that a repeat makes none."""

import asyncio
import base64
import dataclasses
import hashlib
import json
from uuid import UUID

import pytest

from bothy_kit.authenticator import Authenticator, Bent
from bothy_kit.cluster import ORIGIN
from bothy_server.identity.adapters.webauthn.authenticators import WebAuthn
from bothy_server.identity.app.api import Act
from bothy_server.identity.app.devices import Devices
from bothy_server.identity.app.invites import Invites
from bothy_server.identity.app.passkey_proof import Attestation
from bothy_server.identity.app.passkeys import NewPasskey, PasskeyLimits, Passkeys
from bothy_server.kernel.caller import RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.right_losses import RightLosses
from bothy_wire.signing import Purpose

MANAGE = Act("manage_account")


@pytest.fixture
def passkeys(rows, clock):
    return Passkeys(
        rows.uow, clock, [ORIGIN], WebAuthn([ORIGIN]), PasskeyLimits(challenge_ttl=300, first_window=600, most=3)
    )


@pytest.fixture
async def browser(rows):
    return await rows.browser()


async def made(passkeys, device, *, origin=ORIGIN, bent=None):
    """A passkey that was not added yet."""
    wanted = await passkeys.challenge(device.caller)
    new = Authenticator().create(origin, wanted.challenge, wanted.person_id.bytes, bent=bent or Bent())
    return Attestation(*dataclasses.astuple(new))


def signed(device, attestation, *, name="key", challenge=None, origin=ORIGIN, purpose=Purpose.PASSKEY_ADD):
    told = json.loads(attestation.client_data)["challenge"]
    hashed = hashlib.sha256(attestation.attestation_object).digest()
    fields = (challenge or base64.urlsafe_b64decode(told + "="), hashed, name)
    return NewPasskey(name, attestation, device.keys.sign(purpose, *fields, origin=origin))


async def add(passkeys, rows, device):
    """One more, with all that it takes."""
    step_up_id = await rows.confirmed(device, MANAGE)
    return await passkeys.add(device.caller, signed(device, await made(passkeys, device)), step_up_id)


async def refusal(attempt):
    with pytest.raises(Problem) as raised:
        await attempt
    return raised.value.status, raised.value.code


async def test_a_browser_that_an_invite_let_in_adds_its_first_passkey(passkeys, rows, browser):
    wanted = await passkeys.challenge(browser.caller)
    assert (len(wanted.challenge), wanted.person_id, wanted.held, wanted.expires_in_s) == (
        32,
        browser.person_id,
        (),
        300,
    )
    attestation = await made(passkeys, browser)
    passkey = await passkeys.add(browser.caller, signed(browser, attestation, name="telephone"), None)
    assert (passkey.name, passkey.credential_id) == ("telephone", attestation.credential_id)
    assert await passkeys.of_caller(browser.caller) == [passkey]
    assert (await passkeys.challenge(browser.caller)).held == (attestation.credential_id,)
    assert await rows.audit(device_id=browser.id) == [("passkey.add", "added")]


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE devices SET created_at = now() - interval '601 seconds' WHERE id = :id",
        "UPDATE devices SET added_by = 'passkey' WHERE id = :id",
        "UPDATE devices SET kind = 'cli' WHERE id = :id",
    ],
)
async def test_every_other_device_confirms_first(passkeys, rows, browser, spoil):
    await rows.run(spoil, id=browser.id)
    attestation = await made(passkeys, browser)
    before = await rows.content()
    attempt = passkeys.add(browser.caller, signed(browser, attestation), None)
    assert await refusal(attempt) == (401, "step_up_required")
    assert await rows.content() == before
    await passkeys.add(browser.caller, signed(browser, attestation), await rows.confirmed(browser, MANAGE))


async def test_the_second_passkey_takes_a_confirmation_that_is_spent(passkeys, rows, browser):
    await passkeys.add(browser.caller, signed(browser, await made(passkeys, browser)), None)
    step_up_id = await rows.confirmed(browser, MANAGE)
    await passkeys.add(browser.caller, signed(browser, await made(passkeys, browser)), step_up_id)
    for bad in (None, step_up_id, await rows.confirmed(await rows.browser(), MANAGE)):
        attempt = passkeys.add(browser.caller, signed(browser, await made(passkeys, browser)), bad)
        assert await refusal(attempt) == (401, "step_up_required")


async def test_a_first_passkey_that_was_removed_was_the_first_all_the_same(passkeys, rows, browser):
    first = await passkeys.add(browser.caller, signed(browser, await made(passkeys, browser)), None)
    assert await passkeys.remove(browser.caller, first.id, await rows.confirmed(browser, MANAGE)) == []
    attempt = passkeys.add(browser.caller, signed(browser, await made(passkeys, browser)), None)
    assert await refusal(attempt) == (401, "step_up_required")


async def test_of_two_first_passkeys_at_once_one_is_the_first(passkeys, rows, browser):
    new = [await made(passkeys, browser) for _ in range(3)]
    attempts = [passkeys.add(browser.caller, signed(browser, each), None) for each in new]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["Passkey", "Problem", "Problem"]


@pytest.mark.parametrize(
    "spoil",
    ["UPDATE challenges SET used_at = now()", "UPDATE challenges SET expires_at = now()", "DELETE FROM challenges"],
)
async def test_an_answer_to_no_open_challenge_is_refused(passkeys, rows, browser, spoil):
    attestation = await made(passkeys, browser)
    await rows.run(f"{spoil} WHERE device_id = :id", id=browser.id)
    before = await rows.content()
    assert await refusal(passkeys.add(browser.caller, signed(browser, attestation), None)) == (422, "passkey_invalid")
    assert await rows.content() == before


async def test_a_passkey_that_breaks_a_rule_or_was_asked_for_elsewhere_is_refused(passkeys, rows, browser):
    for attestation in (
        await made(passkeys, browser, origin="https://other.example.com"),
        await made(passkeys, browser, bent=Bent(rp_id="other.example.com")),
        await made(passkeys, browser, bent=Bent(verified=False)),
        await made(passkeys, await rows.browser(browser.person_id)),
        await made(passkeys, await rows.browser()),
    ):
        assert await refusal(passkeys.add(browser.caller, signed(browser, attestation), None)) == (
            422,
            "passkey_invalid",
        )
    assert await passkeys.of_caller(browser.caller) == []


async def test_an_access_token_adds_no_passkey_without_the_key_of_its_device(passkeys, rows, browser):
    other = await rows.browser(browser.person_id)
    mine, others = await made(passkeys, browser), Authenticator()
    wanted = await passkeys.challenge(browser.caller)
    new = Attestation(*dataclasses.astuple(others.create(ORIGIN, wanted.challenge, browser.person_id.bytes)))
    good, step_up_id = signed(browser, mine), await rows.confirmed(browser, MANAGE)
    before = await rows.content()
    for bad in (
        signed(other, mine),
        signed(browser, mine, challenge=bytes(32)),
        signed(browser, mine, origin="https://other.example.com"),
        signed(browser, mine, purpose=Purpose.PASSKEY_LOGIN),
        dataclasses.replace(good, name="another"),
        dataclasses.replace(good, attestation=new),
        dataclasses.replace(good, signature=bytes(64)),
    ):
        assert await refusal(passkeys.add(browser.caller, bad, step_up_id)) == (422, "passkey_invalid")
    assert await rows.content() == before
    await passkeys.add(browser.caller, good, step_up_id)


async def test_a_device_revoked_meanwhile_adds_none(passkeys, rows, browser):
    attestation = await made(passkeys, browser)
    await rows.run("UPDATE devices SET revoked_at = now() WHERE id = :id", id=browser.id)
    assert await refusal(passkeys.add(browser.caller, signed(browser, attestation), None)) == (401, "token_invalid")


async def test_a_passkey_is_one_persons(passkeys, rows, browser):
    other = await rows.browser()
    attestation = await made(passkeys, other)
    await passkeys.add(other.caller, signed(other, attestation), None)
    wanted = await passkeys.challenge(browser.caller)
    copied = Authenticator().create(
        ORIGIN, wanted.challenge, browser.person_id.bytes, credential_id=attestation.credential_id
    )
    attempt = passkeys.add(browser.caller, signed(browser, Attestation(*dataclasses.astuple(copied))), None)
    assert await refusal(attempt) == (409, "passkey_exists")


async def test_a_person_has_only_so_many(passkeys, rows, browser):
    for _ in range(3):
        await add(passkeys, rows, browser)
    assert await refusal(add(passkeys, rows, browser)) == (409, "passkey_limit")
    first, *_ = await passkeys.of_caller(browser.caller)
    await passkeys.remove(browser.caller, first.id, await rows.confirmed(browser, MANAGE))
    await add(passkeys, rows, browser)


async def test_a_name_can_be_shown(passkeys, browser):
    attestation = await made(passkeys, browser)
    for bad in ("", "a\x00b", "\u00e9" * 33):
        assert await refusal(passkeys.add(browser.caller, signed(browser, attestation, name=bad), None)) == (
            422,
            "name_invalid",
        )


async def test_a_repeat_adds_none(passkeys, rows, browser):
    attestation, repeat = await made(passkeys, browser), RepeatKey("once", bytes(32), 60)
    first = await passkeys.add(browser.caller, signed(browser, attestation), None, repeat)
    assert await passkeys.add(browser.caller, signed(browser, attestation), None, repeat) == first
    assert await passkeys.of_caller(browser.caller) == [first]
    other = RepeatKey("once", b"x" * 32, 60)
    attempt = passkeys.add(browser.caller, signed(browser, attestation), None, other)
    assert await refusal(attempt) == (422, "idempotency_mismatch")


async def test_a_revoked_device_takes_the_passkeys_with_it_that_it_added(passkeys, rows, clock, browser):
    other = await rows.browser(browser.person_id)
    await add(passkeys, rows, browser)
    kept = await add(passkeys, rows, other)
    devices = Devices(rows.uow, Invites(clock, 60), RightLosses())
    await devices.revoke(browser.id, other.caller, await rows.confirmed(other, MANAGE))
    assert await passkeys.of_caller(other.caller) == [kept]
    assert await rows.audit(subject_device_id=browser.id) == [
        ("device.revoke", "revoked"),
        ("passkey.remove", "device_revoked"),
    ]
    await devices.log_out(other.caller)
    assert await passkeys.of_caller(other.caller) == [kept]


async def test_a_passkey_is_removed_by_its_person_with_a_confirmation(passkeys, rows, browser):
    other = await rows.browser()
    first, second = await add(passkeys, rows, browser), await add(passkeys, rows, browser)
    before = await rows.content()
    attempt = passkeys.remove(browser.caller, first.id, UUID(int=1))
    assert await refusal(attempt) == (401, "step_up_required")
    assert await rows.content() == before
    for who, what in ((other, first.id), (browser, UUID(int=1))):
        attempt = passkeys.remove(who.caller, what, await rows.confirmed(who, MANAGE))
        assert await refusal(attempt) == (404, "passkey_unknown")
    assert await passkeys.remove(browser.caller, first.id, await rows.confirmed(browser, MANAGE)) == [second]
    assert await rows.audit(device_id=browser.id) == [("passkey.add", "added")] * 2 + [("passkey.remove", "removed")]
    again = passkeys.remove(browser.caller, first.id, await rows.confirmed(browser, MANAGE))
    assert await refusal(again) == (404, "passkey_unknown")


async def test_a_passkey_is_removed_while_its_device_is_revoked(passkeys, rows, clock):
    """Both touch the passkey and confirmations of the device; the second waits for the first at the device itself."""
    devices = Devices(rows.uow, Invites(clock, 3600), RightLosses())
    for _ in range(10):
        browser = await rows.browser()
        kept = await rows.device(browser.person_id)
        passkey = await add(passkeys, rows, browser)
        mine, others = await rows.confirmed(browser, MANAGE), await rows.confirmed(kept, MANAGE)
        removed, revoked = await asyncio.gather(
            passkeys.remove(browser.caller, passkey.id, mine),
            devices.revoke(browser.id, kept.caller, others),
            return_exceptions=True,
        )
        assert removed == [] or removed.code == "token_invalid"
        assert revoked.revoked_at is not None
