"""Signing in with a passkey: one answer for whatever does not fit, one use of an answer, and what becomes of the browser."""

import asyncio
import dataclasses

import pytest
from sqlalchemy import text

from bothy_kit.authenticator import Authenticator, Bent
from bothy_kit.cluster import ORIGIN
from bothy_kit.rows import Keys
from bothy_server.identity.adapters.webauthn.authenticators import WebAuthn
from bothy_server.identity.app.devices import Devices
from bothy_server.identity.app.invites import Invites
from bothy_server.identity.app.passkey_login import Browser, PasskeyLogin, PasskeyLoginLimits
from bothy_server.identity.app.passkey_proof import Assertion, Attestation, PasskeyProof, PasskeyStore
from bothy_server.identity.app.ports import DeviceKeys
from bothy_server.identity.domain.tokens import AccessToken
from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.right_losses import RightLosses
from bothy_wire.signing import Purpose

ELSEWHERE = "https://other.example.com"
REFUSED = (401, "login_refused")
WEBAUTHN = WebAuthn([ORIGIN])


@pytest.fixture
def login(rows, tokens, clock):
    proof = PasskeyProof(rows.uow, WEBAUTHN)
    return PasskeyLogin(rows.uow, tokens, clock, [ORIGIN], proof, PasskeyLoginLimits(300, 86400))


class Person:
    """Somebody with a passkey."""

    def __init__(self, person_id, authenticator):
        self.id = person_id
        self.authenticator = authenticator

    def answer(self, challenge, *, origin=ORIGIN, bent=None):
        given = self.authenticator.get(origin, challenge, bent=bent or Bent())
        return Assertion(*dataclasses.astuple(given))


@pytest.fixture
async def person(rows):
    return await with_passkey(rows)


async def with_passkey(rows):
    first, authenticator = await rows.browser(), Authenticator()
    new = Attestation(*dataclasses.astuple(authenticator.create(ORIGIN, bytes(32), first.person_id.bytes)))
    async with rows.uow() as unit:
        store = unit.of(PasskeyStore)
        await store.add(rows.new_id(), first.person_id, first.id, "key", new.credential_id, WEBAUTHN.registered(new))
    return Person(first.person_id, authenticator)


def browser(challenge, keys=None, *, origin=ORIGIN, name="browser", purpose=Purpose.PASSKEY_LOGIN):
    keys = keys or Keys()
    signature = keys.sign(purpose, challenge, *keys.public, name, origin=origin)
    return Browser(name, DeviceKeys(*keys.public), signature)


async def refusal(attempt):
    with pytest.raises(Problem) as raised:
        await attempt
    return raised.value.status, raised.value.code


async def test_a_new_browser_becomes_a_device(login, rows, tokens, person):
    challenge, life = await login.challenge()
    assert (len(challenge), life) == (32, 300)
    made = await login.login(person.answer(challenge), browser(challenge))
    assert made.person_id == person.id
    assert tokens.read(AccessToken, made.access_token) == AccessToken(person.id, made.device_id)
    (found,) = await rows.run(
        "SELECT name, kind, added_by, login_until - now() > interval '86000 seconds' AS signed_in"
        " FROM devices WHERE id = :id",
        id=made.device_id,
    )
    assert tuple(found) == ("browser", "browser", "passkey", True)
    assert await rows.audit(device_id=made.device_id) == [("device.add", "passkey"), ("device.login", "passkey")]


async def test_a_known_browser_signs_in_again(login, rows, person):
    keys = Keys()
    challenge, _ = await login.challenge()
    first = await login.login(person.answer(challenge), browser(challenge, keys))
    await rows.run("UPDATE devices SET login_until = now() WHERE id = :id", id=first.device_id)
    challenge, _ = await login.challenge()
    again = await login.login(person.answer(challenge), browser(challenge, keys, name="renamed"))
    assert again.device_id == first.device_id
    ((name, over),) = await rows.run(
        "SELECT name, login_until <= now() FROM devices WHERE id = :id", id=first.device_id
    )
    assert (name, over) == ("browser", False)
    assert (await rows.audit(device_id=first.device_id))[-1] == ("device.login", "passkey")


async def test_what_does_not_prove_the_passkey_is_one_answer(login, rows, person):
    other = await with_passkey(rows)
    challenge, _ = await login.challenge()
    before = await rows.content()
    good, device = person.answer(challenge), browser(challenge)
    foreign = other.answer(challenge)
    for bad in (
        person.answer(challenge, origin=ELSEWHERE, bent=Bent(rp_id="relay.example.com")),
        person.answer(challenge, bent=Bent(rp_id="other.example.com")),
        person.answer(challenge, bent=Bent(verified=False)),
        person.answer(challenge, bent=Bent(present=False)),
        person.answer(challenge, bent=Bent(kind="webauthn.create")),
        person.answer(bytes(32)),
        dataclasses.replace(good, credential_id=b"unknown"),
        dataclasses.replace(good, credential_id=foreign.credential_id),
        dataclasses.replace(good, signature=foreign.signature),
        dataclasses.replace(good, user_handle=other.id.bytes),
        dataclasses.replace(good, user_handle=None),
    ):
        assert await refusal(login.login(bad, device)) == REFUSED
    assert await rows.content() == before
    await login.login(person.answer(challenge), device)


async def test_a_browser_that_does_not_prove_its_key_is_the_same_answer(login, rows, person):
    challenge, _ = await login.challenge()
    keys, other = Keys(), Keys()
    good = browser(challenge, keys)
    before = await rows.content()
    for bad in (
        browser(challenge, keys, origin=ELSEWHERE),
        browser(bytes(32), keys),
        browser(challenge, keys, purpose=Purpose.DEVICE_ASK),
        dataclasses.replace(good, name="another"),
        dataclasses.replace(good, keys=DeviceKeys(other.public[0], keys.public[1])),
        dataclasses.replace(good, keys=DeviceKeys(keys.public[0], other.public[1])),
        dataclasses.replace(good, signature=bytes(64)),
    ):
        assert await refusal(login.login(person.answer(challenge), bad)) == REFUSED
    assert await rows.content() == before
    await login.login(person.answer(challenge), good)


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE persons SET disabled_at = now() WHERE id = :id",
        "UPDATE passkeys SET removed_at = now() WHERE person_id = :id",
        "UPDATE challenges SET used_at = now() WHERE device_id IS NULL AND CAST(:id AS uuid) IS NOT NULL",
        "UPDATE challenges SET expires_at = now() WHERE device_id IS NULL AND CAST(:id AS uuid) IS NOT NULL",
    ],
)
async def test_a_disabled_person_a_removed_passkey_and_an_old_challenge_are_the_same_answer(login, rows, person, spoil):
    challenge, _ = await login.challenge()
    answer, device = person.answer(challenge), browser(challenge)
    await rows.run(spoil, id=person.id)
    before = await rows.content()
    assert await refusal(login.login(answer, device)) == REFUSED
    assert await rows.content() == before


async def test_a_challenge_for_anything_else_signs_nobody_in(login, rows, person):
    device = await rows.browser(person.id)
    value = rows.new_id().bytes * 2
    for purpose in ("login", "passkey_register", "manage_account"):
        await rows.run(
            "INSERT INTO challenges (id, challenge_hash, purpose, device_id, person_id, expires_at)"
            " VALUES (:id, sha256(CAST(:value AS bytea)), :purpose, :device, :person, now() + interval '1 minute')",
            id=rows.new_id(),
            value=value,
            purpose=purpose,
            device=device.id,
            person=person.id,
        )
        assert await refusal(login.login(person.answer(value), browser(value))) == REFUSED
        await rows.run("DELETE FROM challenges WHERE device_id = :id", id=device.id)


async def test_keys_of_another_device_are_told_to_whoever_holds_the_passkey(login, rows, person):
    revoked, foreign, cli = await rows.browser(person.id), await rows.browser(), await rows.device(person.id)
    mixed = Keys(signing_key=(await rows.browser(person.id)).keys.signing_key)
    await rows.run("UPDATE devices SET revoked_at = now() WHERE id = :id", id=revoked.id)
    challenge, _ = await login.challenge()
    for keys in (revoked.keys, foreign.keys, cli.keys, mixed):
        attempt = login.login(person.answer(challenge), browser(challenge, keys))
        assert await refusal(attempt) == (409, "device_exists")
    await login.login(person.answer(challenge), browser(challenge))


async def test_a_login_and_the_revocation_of_its_browser_never_wait_in_a_ring(login, rows, person, clock):
    """Each wants the browser's row and that of the passkey which it added."""
    ((device_id,),) = await rows.run("SELECT id FROM devices WHERE person_id = :id", id=person.id)
    keys = Keys()
    await rows.run(
        "UPDATE devices SET signing_key = :signing, channel_key = :channel WHERE id = :id",
        signing=keys.public[0],
        channel=keys.public[1],
        id=device_id,
    )
    devices = Devices(rows.uow, Invites(clock, 60), RightLosses())
    challenge, _ = await login.challenge()
    async with asyncio.TaskGroup() as tasks, rows.uow() as unit:
        await unit.connection.execute(text("SELECT FROM passkeys WHERE device_id = :id FOR UPDATE"), {"id": device_id})
        signing_in = tasks.create_task(login.login(person.answer(challenge), browser(challenge, keys)))
        await rows.blocked()
        tasks.create_task(devices.revoke(device_id))
        await rows.blocked(2)
    assert signing_in.result().device_id == device_id
    (found,) = await rows.run("SELECT revoked_at IS NULL FROM devices WHERE id = :id", id=device_id)
    assert tuple(found) == (False,)
    challenge, _ = await login.challenge()
    assert await refusal(login.login(person.answer(challenge), browser(challenge))) == REFUSED


async def test_of_two_logins_with_one_answer_exactly_one_wins(login, rows, person):
    challenge, _ = await login.challenge()
    answer = person.answer(challenge)
    attempts = [login.login(answer, browser(challenge)) for _ in range(3)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["Problem", "Problem", "SignedIn"]
    assert await rows.run(
        "SELECT count(*) FROM devices WHERE person_id = :id AND added_by = 'passkey'", id=person.id
    ) == [(1,)]
    assert await rows.audit(subject_person_id=person.id) == []


async def test_a_copied_passkey_signs_nobody_in(login, rows, person):
    challenge, _ = await login.challenge()
    await login.login(person.answer(challenge, bent=Bent(count=9)), browser(challenge))
    challenge, _ = await login.challenge()
    before = await rows.run("SELECT count(*) FROM devices")
    attempt = login.login(person.answer(challenge, bent=Bent(count=9)), browser(challenge))
    assert await refusal(attempt) == REFUSED
    assert await rows.audit(subject_person_id=person.id) == [("attempt.refused", "passkey_counter")]
    assert await rows.run("SELECT count(*) FROM devices") == before


async def test_a_name_can_be_shown(login, person):
    challenge, _ = await login.challenge()
    attempt = login.login(person.answer(challenge), browser(challenge, name="a\x1bb"))
    assert await refusal(attempt) == (422, "name_invalid")
