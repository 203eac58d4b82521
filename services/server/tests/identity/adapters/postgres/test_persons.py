"""Persons and devices as rows."""

import pytest

from bothy_kit.rows import Keys
from bothy_server.identity.app.ports import PersonStore


async def test_a_device_comes_back_with_its_person(rows):
    device = await rows.device(operator=True)
    ((person_name,),) = await rows.run("SELECT name FROM persons WHERE id = :id", id=device.person_id)
    async with rows.uow() as unit:
        found = await unit.of(PersonStore).device(device.id)
    assert (found.id, found.person_id, found.person_name) == (device.id, device.person_id, person_name)
    assert (found.signing_key, found.channel_key) == device.keys.public
    assert (found.name, found.usable, found.is_operator) == ("laptop", True, True)


async def test_a_name_or_a_key_is_taken_once(rows):
    person_id, known = await rows.person(), await rows.device()
    ((name,),) = await rows.run("SELECT name FROM persons WHERE id = :id", id=person_id)
    async with rows.uow() as unit:
        store = unit.of(PersonStore)
        assert not await store.add_person(rows.new_id(), name, is_operator=False)
        signing_key, channel_key = Keys().public
        assert not await store.add_device(rows.new_id(), person_id, "a", known.keys.public[0], channel_key)
        assert not await store.add_device(rows.new_id(), person_id, "a", signing_key, known.keys.public[1])
        assert await store.add_device(rows.new_id(), person_id, "a", signing_key, channel_key)


@pytest.mark.parametrize("ttl_s", [-1, 60])
async def test_an_invite_is_used_in_time_and_once(rows, ttl_s):
    person_id, code_hash = await rows.person(), rows.new_id().bytes * 2
    async with rows.uow() as unit:
        store = unit.of(PersonStore)
        await store.add_invite(rows.new_id(), person_id, code_hash, ttl_s)
        used = await store.use_invite(code_hash)
        assert (used is not None and used[0] == person_id) is (ttl_s > 0)
        assert await store.use_invite(code_hash) is None
