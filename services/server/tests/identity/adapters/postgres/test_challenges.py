"""Challenges and step-ups as rows. Their use cases show how they are spent; here is what becomes of them afterwards."""

from uuid import UUID

import pytest

from bothy_server.identity.app.ports import Challenge, ChallengeStore
from bothy_server.identity.domain.act import Act

NOBODY = UUID(int=1)


async def add(rows, challenge, ttl_s=60):
    async with rows.uow() as unit:
        return await unit.of(ChallengeStore).add(rows.new_id(), challenge, ttl_s)


async def use_step_up(rows, value, device):
    async with rows.uow() as unit:
        return await unit.of(ChallengeStore).use_step_up(value, device.id)


async def use(rows, value, device_id, purpose="login"):
    async with rows.uow() as unit:
        return await unit.of(ChallengeStore).use(value, device_id, purpose)


@pytest.mark.parametrize("purpose", ["open", "attach", "manage_host", "manage_relay", "manage_account"])
async def test_a_challenge_comes_back_as_it_was_stored(rows, purpose):
    device = await rows.device()
    host = await rows.host(device)
    act = {
        "manage_host": Act("manage_host", host.id),
        "manage_relay": Act("manage_relay"),
        "manage_account": Act("manage_account"),
    }.get(purpose, Act(purpose, host.id, "shell", "alex-shell"))
    wanted = Challenge(rows.new_id().bytes * 2, device.id, act)
    assert await add(rows, wanted)
    assert not await use(rows, wanted.value, device.id)
    assert await use_step_up(rows, wanted.value, device) == act
    assert await use_step_up(rows, wanted.value, device) is None


@pytest.mark.parametrize("purpose", ["login", "passkey_register", "passkey_login"])
async def test_a_challenge_is_for_one_purpose_and_used_once(rows, purpose):
    device, other = await rows.device(), await rows.device()
    whose = None if purpose == "passkey_login" else device.id
    wanted = Challenge(rows.new_id().bytes * 2, whose, purpose)
    assert await add(rows, wanted)
    assert await use_step_up(rows, wanted.value, device) is None
    for foreign in {"login", "passkey_register", "passkey_login"} - {purpose}:
        assert not await use(rows, wanted.value, whose, foreign)
    for nobody in {None, device.id, other.id} - {whose}:
        assert not await use(rows, wanted.value, nobody, purpose)
    assert await use(rows, wanted.value, whose, purpose)
    assert not await use(rows, wanted.value, whose, purpose)


async def test_nothing_is_stored_for_a_device_or_host_that_is_not_there(rows):
    device = await rows.device()
    assert not await add(rows, Challenge(b"x", NOBODY, "login"))
    assert not await add(rows, Challenge(b"x", device.id, Act("open", NOBODY, "shell", "alex-shell")))
    assert await rows.run("SELECT FROM challenges WHERE device_id = :id", id=device.id) == []


async def test_what_expired_is_forgotten_and_nothing_else(rows):
    device = await rows.device()
    host = await rows.host(device)
    for ttl_s in (-1, 60):
        await add(rows, Challenge(rows.new_id().bytes * 2, device.id, "login"), ttl_s)
        await rows.step_up(device, host, ttl_s=ttl_s)
        await rows.run(
            "INSERT INTO invites (id, person_id, code_hash, expires_at)"
            " VALUES (:id, :person, sha256(CAST(:code AS bytea)), now() + make_interval(secs => :ttl_s))",
            id=rows.new_id(),
            person=device.person_id,
            code=rows.new_id().bytes,
            ttl_s=ttl_s,
        )
        await rows.run(
            "INSERT INTO idempotency_keys (person_id, device_id, key, request_hash, expires_at)"
            " VALUES (:person, :device, :key, sha256('body'), now() + make_interval(secs => :ttl_s))",
            person=device.person_id,
            device=device.id,
            key=str(ttl_s),
            ttl_s=ttl_s,
        )
    async with rows.uow() as unit:
        assert await unit.of(ChallengeStore).prune() == 4
        assert await unit.of(ChallengeStore).prune() == 0
    for table in ("challenges", "step_ups", "invites", "idempotency_keys"):
        query = f"SELECT expires_at > now() FROM {table} WHERE person_id = :id"
        assert await rows.run(query, id=device.person_id) == [(True,)]
