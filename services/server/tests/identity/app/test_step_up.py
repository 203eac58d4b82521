"""A step-up: one device, one act, one use, one server."""

import asyncio
from dataclasses import astuple, replace
from uuid import UUID

import pytest

from bothy_kit.authenticator import Authenticator, Bent
from bothy_kit.cluster import ORIGIN
from bothy_server.identity.adapters.webauthn.authenticators import WebAuthn
from bothy_server.identity.app.api import Act, spend_step_up
from bothy_server.identity.app.devices import DeviceStore
from bothy_server.identity.app.passkey_proof import Assertion, Attestation, PasskeyProof, PasskeyStore
from bothy_server.identity.app.ports import Challenge, ChallengeStore
from bothy_server.identity.app.step_up import StepUp, StepUpLimits
from bothy_server.kernel.problems import Problem
from bothy_wire.signing import Purpose

NOBODY = UUID(int=1)
ELSEWHERE = "https://other.example.com"


@pytest.fixture
def step_up(rows, clock):
    proof = PasskeyProof(rows.uow, WebAuthn([ORIGIN]))
    limits = StepUpLimits(challenge_ttl=60, passkey_challenge_ttl=300, step_up_window=30)
    return StepUp(rows.uow, clock, [ELSEWHERE + ":8443", ORIGIN], proof, limits)


@pytest.fixture
async def device(rows):
    return await rows.device()


@pytest.fixture
async def act(rows, device):
    """What the device is about to do."""
    host = await rows.host(device)
    return Act("open", host.id, "shell", "alex-shell")


def signature(device, challenge, act, *, origin=ORIGIN, device_id=None, purpose=Purpose.DEVICE_STEP_UP):
    fields = (challenge, str(device_id or device.id), *act.fields())
    return device.keys.sign(purpose, *fields, origin=origin)


async def refusal(attempt):
    with pytest.raises(Problem) as raised:
        await attempt
    return raised.value.status, raised.value.code


async def test_a_confirmation_is_worth_exactly_the_act(step_up, rows, device, act):
    asked = await step_up.challenge(device.caller, act)
    challenge = asked.challenge
    assert (len(challenge), asked.expires_in_s, asked.passkeys) == (32, 60, ())
    step_up_id, life = await step_up.confirm(device.caller, challenge, signature(device, challenge, act))
    assert life == 30
    assert await rows.audit(device_id=device.id) == [("step_up.confirm", "open")]
    async with rows.uow() as unit:
        await spend_step_up(unit, device.caller, step_up_id, act)


async def test_the_challenge_is_stored_as_its_hash_only(step_up, rows, device, act):
    challenge = (await step_up.challenge(device.caller, act)).challenge
    ((everything,),) = await rows.run("SELECT c::text FROM challenges c WHERE device_id = :id", id=device.id)
    assert challenge.hex() not in everything


async def test_there_is_no_challenge_for_a_host_that_is_not_there_or_foreign(step_up, rows, device):
    foreign = await rows.host()
    before = await rows.content()
    for host_id in (NOBODY, foreign.id):
        attempt = step_up.challenge(device.caller, Act("open", host_id, "shell", "alex-shell"))
        assert await refusal(attempt) == (404, "host_unknown")
    assert await rows.content() == before


async def test_a_signature_for_anything_else_confirms_nothing(step_up, rows, device, act):
    challenge = (await step_up.challenge(device.caller, act)).challenge
    other = await rows.device()
    before = await rows.content()
    for bad in (
        signature(device, challenge, act, origin=ELSEWHERE),
        signature(device, challenge, act, device_id=other.id),
        signature(other, challenge, act, device_id=device.id),
        signature(device, challenge, replace(act, purpose="attach")),
        signature(device, challenge, replace(act, host_id=NOBODY)),
        signature(device, challenge, replace(act, profile="other")),
        signature(device, challenge, replace(act, session_user="robin-shell")),
        signature(device, challenge, act, purpose=Purpose.DEVICE_LOGIN),
        signature(device, bytes(32), act),
        bytes(64),
    ):
        assert await refusal(step_up.confirm(device.caller, challenge, bad)) == (401, "step_up_refused")
    assert await rows.content() == before
    await step_up.confirm(device.caller, challenge, signature(device, challenge, act))


async def test_a_challenge_is_for_the_device_that_asked(step_up, rows, device, act):
    challenge = (await step_up.challenge(device.caller, act)).challenge
    for other in (await rows.device(device.person_id), await rows.device()):
        good = signature(other, challenge, act)
        assert await refusal(step_up.confirm(other.caller, challenge, good)) == (401, "step_up_refused")
    unknown = replace(device.caller, device_id=NOBODY)
    good = signature(device, challenge, act)
    assert await refusal(step_up.confirm(unknown, challenge, good)) == (401, "token_invalid")


async def test_a_login_challenge_confirms_nothing(step_up, rows, device, act):
    value = bytes(range(32))
    async with rows.uow() as unit:
        await unit.of(ChallengeStore).add(rows.new_id(), Challenge(value, device.id, "login"), 60)
    attempt = step_up.confirm(device.caller, value, signature(device, value, act))
    assert await refusal(attempt) == (401, "step_up_refused")


@pytest.mark.parametrize("column", ["used_at", "expires_at"])
async def test_a_challenge_used_or_too_old_confirms_nothing(step_up, rows, device, act, column):
    challenge = (await step_up.challenge(device.caller, act)).challenge
    await rows.run(f"UPDATE challenges SET {column} = now() WHERE device_id = :id", id=device.id)
    attempt = step_up.confirm(device.caller, challenge, signature(device, challenge, act))
    assert await refusal(attempt) == (401, "step_up_refused")


async def test_of_two_confirmations_at_once_exactly_one_wins(step_up, rows, device, act):
    challenge = (await step_up.challenge(device.caller, act)).challenge
    good = signature(device, challenge, act)
    attempts = [step_up.confirm(device.caller, challenge, good) for _ in range(3)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["Problem", "Problem", "tuple"]
    assert await rows.run("SELECT count(*) FROM step_ups WHERE device_id = :id", id=device.id) == [(1,)]


@pytest.mark.parametrize(
    "incomplete",
    [
        Act("open", NOBODY, "shell"),
        Act("attach", None, "shell", "alex-shell"),
        Act("manage_host"),
        Act("manage_host", NOBODY, "shell", "alex-shell"),
        Act("manage_relay", NOBODY),
        Act("manage_account", None, "shell"),
    ],
)
async def test_an_act_names_what_it_is_about_and_nothing_else(step_up, device, incomplete):
    assert await refusal(step_up.challenge(device.caller, incomplete)) == (422, "step_up_invalid")


async def test_who_may_not_do_an_act_gets_no_challenge_for_it(step_up, rows, device, act):
    guest, operator = await rows.device(), await rows.device(operator=True)
    host = await rows.host(device)
    act = replace(act, host_id=host.id)
    await rows.grant(guest, host)
    manage_host, manage_relay = Act("manage_host", act.host_id), Act("manage_relay")
    assert await refusal(step_up.challenge(guest.caller, manage_host)) == (404, "host_unknown")
    assert await refusal(step_up.challenge(device.caller, manage_relay)) == (403, "operator_required")
    assert await refusal(step_up.challenge(operator.caller, act)) == (404, "host_unknown")
    for who, what in (
        (device, manage_host),
        (operator, manage_host),
        (operator, manage_relay),
        (guest, Act("manage_account")),
        (guest, act),
    ):
        challenge = (await step_up.challenge(who.caller, what)).challenge
        step_up_id, _ = await step_up.confirm(who.caller, challenge, signature(who, challenge, what))
        async with rows.uow() as unit:
            await spend_step_up(unit, who.caller, step_up_id, what)


# ---- a browser ------------------------------------------------------------------------------------------------------


class Holder:
    """A browser whose person has a passkey."""

    def __init__(self, device, authenticator):
        self.device = device
        self.caller = device.caller
        self.authenticator = authenticator

    def answer(self, challenge, *, origin=ORIGIN, bent=None):
        return Assertion(*astuple(self.authenticator.get(origin, challenge, bent=bent or Bent())))


async def with_passkey(rows, device):
    authenticator = Authenticator()
    new = Attestation(*astuple(authenticator.create(ORIGIN, bytes(32), device.person_id.bytes)))
    async with rows.uow() as unit:
        registered = WebAuthn([ORIGIN]).registered(new)
        await unit.of(PasskeyStore).add(
            rows.new_id(), device.person_id, device.id, "key", new.credential_id, registered
        )
    return Holder(device, authenticator)


@pytest.fixture
async def browser(rows):
    return await with_passkey(rows, await rows.browser())


@pytest.fixture
async def browser_act(rows, browser):
    host = await rows.host(browser.device)
    return Act("open", host.id, "shell", "alex-shell")


async def test_a_browser_confirms_with_a_passkey(step_up, rows, browser, browser_act):
    asked = await step_up.challenge(browser.caller, browser_act)
    assert (asked.expires_in_s, asked.passkeys) == (300, (browser.authenticator.credentials[0].id,))
    step_up_id, _ = await step_up.confirm(browser.caller, asked.challenge, browser.answer(asked.challenge))
    assert await rows.run("SELECT method FROM step_ups WHERE id = :id", id=step_up_id) == [("passkey",)]
    assert await rows.audit(device_id=browser.device.id) == [("step_up.confirm", "open")]
    async with rows.uow() as unit:
        await spend_step_up(unit, browser.caller, step_up_id, browser_act)


async def test_a_browser_without_a_passkey_is_told_so(step_up, rows):
    device = await rows.browser()
    before = await rows.content()
    assert await refusal(step_up.challenge(device.caller, Act("manage_account"))) == (401, "passkey_required")
    assert await rows.content() == before


async def test_the_key_of_a_browser_confirms_nothing(step_up, rows, browser, browser_act):
    challenge = (await step_up.challenge(browser.caller, browser_act)).challenge
    before = await rows.content()
    signed = signature(browser.device, challenge, browser_act)
    assert await refusal(step_up.confirm(browser.caller, challenge, signed)) == (401, "passkey_required")
    assert await rows.content() == before
    await step_up.confirm(browser.caller, challenge, browser.answer(challenge))


async def test_a_passkey_says_nothing_about_a_command_line(step_up, rows):
    device = await rows.device()
    holder = await with_passkey(rows, device)
    challenge = (await step_up.challenge(device.caller, Act("manage_account"))).challenge
    attempt = step_up.confirm(device.caller, challenge, holder.answer(challenge))
    assert await refusal(attempt) == (401, "step_up_refused")


async def test_a_passkey_of_anybody_else_or_for_anything_else_confirms_nothing(step_up, rows, browser, browser_act):
    other = await with_passkey(rows, await rows.browser())
    challenge = (await step_up.challenge(browser.caller, browser_act)).challenge
    second = (await step_up.challenge(browser.caller, Act("manage_account"))).challenge
    before = await rows.content()
    good = browser.answer(challenge)
    for bad in (
        browser.answer(second),
        browser.answer(challenge, origin=ELSEWHERE, bent=Bent(rp_id="relay.example.com")),
        browser.answer(challenge, bent=Bent(rp_id="other.example.com")),
        browser.answer(challenge, bent=Bent(verified=False)),
        other.answer(challenge),
        replace(other.answer(challenge), user_handle=None),
        replace(good, credential_id=other.answer(challenge).credential_id),
        replace(good, user_handle=other.device.person_id.bytes),
        replace(good, signature=b"x"),
    ):
        assert await refusal(step_up.confirm(browser.caller, challenge, bad)) == (401, "step_up_refused")
    assert await rows.content() == before
    await step_up.confirm(browser.caller, challenge, replace(browser.answer(challenge), user_handle=None))


async def test_of_two_uses_of_one_answer_at_once_exactly_one_wins(step_up, rows, browser, browser_act):
    challenge = (await step_up.challenge(browser.caller, browser_act)).challenge
    good = browser.answer(challenge)
    attempts = [step_up.confirm(browser.caller, challenge, good) for _ in range(3)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["Problem", "Problem", "tuple"]
    assert await rows.run("SELECT count(*) FROM step_ups WHERE device_id = :id", id=browser.device.id) == [(1,)]
    assert await rows.audit(subject_person_id=browser.device.person_id) == []


async def test_a_copied_passkey_confirms_nothing(step_up, rows, browser, browser_act):
    for count, code in ((7, None), (7, "step_up_refused")):
        challenge = (await step_up.challenge(browser.caller, browser_act)).challenge
        attempt = step_up.confirm(browser.caller, challenge, browser.answer(challenge, bent=Bent(count=count)))
        if code is None:
            await attempt
        else:
            assert await refusal(attempt) == (401, code)
    entries = await rows.audit(subject_person_id=browser.device.person_id)
    assert entries == [("attempt.refused", "passkey_counter")]


async def test_nothing_is_confirmed_behind_a_revocation(step_up, rows, device, act):
    """It forgets what is confirmed, and so nothing may be confirmed while it runs."""
    challenge = (await step_up.challenge(device.caller, act)).challenge
    async with rows.uow() as unit:
        await unit.of(DeviceStore).lock({device.id})
        attempts = [
            asyncio.create_task(step_up.confirm(device.caller, challenge, signature(device, challenge, act))),
            asyncio.create_task(step_up.challenge(device.caller, act)),
        ]
        await rows.blocked(2)
        await unit.of(DeviceStore).revoke(device.id)
    for outcome in await asyncio.gather(*attempts, return_exceptions=True):
        assert (outcome.status, outcome.code) == (401, "token_invalid")
    for table in ("step_ups", "challenges"):
        assert await rows.run(f"SELECT FROM {table} WHERE device_id = :id", id=device.id) == []
