"""A proof by a passkey: whose it is, that its counter grows, and what a copy of it leaves behind."""

import asyncio
import dataclasses

import pytest

from bothy_kit.authenticator import Authenticator, Bent
from bothy_kit.cluster import ORIGIN
from bothy_server.identity.adapters.webauthn.authenticators import WebAuthn
from bothy_server.identity.app.passkey_proof import Assertion, Attestation, PasskeyProof, PasskeyStore
from bothy_server.kernel.problems import Problem

CHALLENGE = bytes(range(32))
REFUSAL = Problem(401, "login_refused", "no")
WEBAUTHN = WebAuthn([ORIGIN])


@pytest.fixture
def proof(rows):
    return PasskeyProof(rows.uow, WEBAUTHN)


class Holder:
    """A person with a browser and a passkey, past every check."""

    def __init__(self, browser, authenticator):
        self.browser = browser
        self.authenticator = authenticator

    def answer(self, bent=None):
        return Assertion(*dataclasses.astuple(self.authenticator.get(ORIGIN, CHALLENGE, bent=bent or Bent())))


async def holder(rows, *, counts=True):
    browser, authenticator = await rows.browser(), Authenticator(counts=counts)
    made = Attestation(*dataclasses.astuple(authenticator.create(ORIGIN, CHALLENGE, browser.person_id.bytes)))
    async with rows.uow() as unit:
        assert await unit.of(PasskeyStore).add(
            rows.new_id(), browser.person_id, browser.id, "key", made.credential_id, WEBAUTHN.registered(made)
        )
    return Holder(browser, authenticator)


async def use(proof, rows, answer):
    async with proof.watched(REFUSAL), rows.uow() as unit:
        proven = await proof.check(unit, answer)
        if proven is not None:
            await proof.note_use(unit, proven)
    return proven


async def test_a_passkey_proves_its_person(proof, rows):
    whose = await holder(rows)
    proven = await use(proof, rows, whose.answer())
    assert (proven.passkey.person_id, proven.answered.challenge) == (whose.browser.person_id, CHALLENGE)
    ((count, used),) = await rows.run(
        "SELECT sign_count, last_used_at FROM passkeys WHERE person_id = :id", id=whose.browser.person_id
    )
    assert count == 1
    assert used is not None


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE passkeys SET removed_at = now() WHERE person_id = :id",
        "UPDATE persons SET disabled_at = now() WHERE id = :id",
        "DELETE FROM passkeys WHERE person_id = :id",
        "UPDATE passkeys SET public_key = 'x' WHERE person_id = :id",
    ],
)
async def test_a_passkey_that_is_gone_or_of_a_disabled_person_proves_nothing(proof, rows, spoil):
    whose = await holder(rows)
    await rows.run(spoil, id=whose.browser.person_id)
    assert await use(proof, rows, whose.answer()) is None


async def test_a_passkey_of_another_person_proves_nothing_under_this_ones_name(proof, rows):
    whose, other = await holder(rows), await holder(rows)
    for spoilt in (
        dataclasses.replace(whose.answer(), user_handle=other.browser.person_id.bytes),
        dataclasses.replace(whose.answer(), credential_id=other.answer().credential_id),
    ):
        assert await use(proof, rows, spoilt) is None


async def test_the_authenticator_need_not_say_whose_the_passkey_is(proof, rows):
    whose = await holder(rows)
    assert await use(proof, rows, dataclasses.replace(whose.answer(), user_handle=None)) is not None


async def test_an_unknown_passkey_is_checked_like_any_other(rows):
    asked = []

    class Watched:
        def answered(self, assertion, public_key):
            asked.append(public_key)

    whose = await holder(rows)
    proof = PasskeyProof(rows.uow, Watched())
    for answer in (whose.answer(), dataclasses.replace(whose.answer(), credential_id=b"unknown")):
        assert await use(proof, rows, answer) is None
    assert [key is None for key in asked] == [False, True]


@pytest.mark.parametrize("count", [4, 5, 0])
async def test_a_counter_that_went_back_is_refused_and_audited(proof, rows, count):
    whose = await holder(rows)
    await use(proof, rows, whose.answer(Bent(count=5)))
    with pytest.raises(Problem) as raised:
        await use(proof, rows, whose.answer(Bent(count=count)))
    assert raised.value is REFUSAL
    assert await rows.audit(subject_person_id=whose.browser.person_id) == [("attempt.refused", "passkey_counter")]
    assert await use(proof, rows, whose.answer(Bent(count=6))) is not None


async def test_an_authenticator_that_does_not_count_is_believed(proof, rows):
    whose = await holder(rows, counts=False)
    for _ in range(2):
        assert await use(proof, rows, whose.answer()) is not None
    assert await use(proof, rows, whose.answer(Bent(count=1))) is not None


async def test_a_passkey_is_removed_before_or_after_a_proof_but_not_within(proof, rows):
    whose = await holder(rows)

    async def remove():
        async with rows.uow() as unit:
            assert await unit.of(PasskeyStore).remove(proven.passkey.id, whose.browser.person_id)

    async with asyncio.TaskGroup() as tasks, rows.uow() as unit:
        proven = await proof.check(unit, whose.answer())
        tasks.create_task(remove())
        await rows.blocked()
        await proof.note_use(unit, proven)
    assert await use(proof, rows, whose.answer()) is None
