import asyncio
from contextlib import suppress

import pytest

from bothy_kit.rows import Rows
from bothy_server.identity.app.repeats import Made, made_before, remember_made
from bothy_server.kernel.caller import RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.platform.database import Database
from bothy_server.platform.settings import Database as DatabaseSettings

REPEAT = RepeatKey("one", bytes(32), 3600)


@pytest.fixture
async def caller(rows):
    return (await rows.device()).caller


async def made(rows, caller, repeat=REPEAT, *, attach_seq=None):
    """A use case that makes something: its id, and whether it was made before."""
    async with rows.uow() as unit:
        before = await made_before(unit, caller, repeat)
        if before is not None:
            return before, True
        new = Made(rows.new_id(), attach_seq)
        await remember_made(unit, caller, repeat, new)
    return new, False


async def refusal(call):
    with pytest.raises(Problem) as raised:
        await call
    return raised.value.status, raised.value.code, raised.value.retry_after_s


async def test_a_repeat_is_told_what_was_made(rows, caller):
    first, _ = await made(rows, caller, attach_seq=7)
    assert first.attach_seq == 7
    assert await made(rows, caller) == (first, True)
    assert await made(rows, caller) == (first, True)


async def test_without_a_key_every_request_makes_its_own(rows, caller):
    before = await rows.content()
    assert not any([(await made(rows, caller, None))[1] for _ in range(2)])
    assert await rows.content() == before


async def test_keys_are_of_one_person_and_device(rows, caller):
    phone = (await rows.device(caller.person_id)).caller
    stranger = (await rows.device()).caller
    for who in (caller, phone, stranger):
        assert (await made(rows, who))[1] is False
    assert (await made(rows, caller, RepeatKey("other", bytes(32), 3600)))[1] is False


async def test_another_request_with_the_key_is_refused(rows, caller):
    await made(rows, caller)
    other = RepeatKey("one", bytes(31) + b"\1", 3600)
    before = await rows.content()
    assert await refusal(made(rows, caller, other)) == (422, "idempotency_mismatch", None)
    assert await rows.content() == before


async def test_a_request_that_was_refused_leaves_nothing_and_is_tried_anew(rows, caller):
    before = await rows.content()
    with suppress(Problem):
        async with rows.uow() as unit:
            assert await made_before(unit, caller, REPEAT) is None
            raise Problem(409, "host_unavailable", "")
    assert await rows.content() == before
    assert (await made(rows, caller))[1] is False


async def test_a_key_is_forgotten_after_its_life(rows, caller):
    first, _ = await made(rows, caller)
    await rows.run("UPDATE idempotency_keys SET expires_at = now() WHERE made_id = :id", id=first.id)
    other = RepeatKey("one", bytes(31) + b"\1", 3600)
    second, repeated = await made(rows, caller, other)
    assert not repeated
    assert await made(rows, caller, other) == (second, True)


async def test_of_two_at_once_one_makes_it_and_the_other_hears_of_it(rows, caller, shared_database_url, clock):
    database = Database(DatabaseSettings(url=shared_database_url))
    nodes = (rows, Rows(database, clock)) * 3
    answers = await asyncio.gather(*(made(node, caller) for node in nodes))
    await database.close()
    assert sorted(repeated for _, repeated in answers) == [False] + [True] * 5
    assert len({each.id for each, _ in answers}) == 1


async def test_when_the_first_of_two_is_refused_the_second_makes_it(rows, caller):
    with suppress(Problem):
        async with rows.uow() as unit:
            await made_before(unit, caller, REPEAT)
            second = asyncio.create_task(made(rows, caller))
            await rows.blocked()
            raise Problem(409, "host_unavailable", "")
    assert (await second)[1] is False


async def test_one_that_still_runs_is_not_waited_for_long(rows, caller, shared_database_url, clock):
    impatient = Database(DatabaseSettings(url=shared_database_url, lock_timeout="50ms"))
    async with rows.uow() as unit:
        await made_before(unit, caller, REPEAT)
        answer = await refusal(made(Rows(impatient, clock), caller))
    await impatient.close()
    assert answer == (409, "idempotency_running", 1)
