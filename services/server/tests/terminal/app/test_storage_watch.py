"""The database went, and came back: told once each."""

import pytest

from bothy_server.terminal.app.storage_watch import StorageWatch

RETRY_S = 2


@pytest.fixture
def told():
    return []


@pytest.fixture
def watch(rows, tasks, told):
    return StorageWatch(rows.uow, rows.clock, RETRY_S, told.append, tasks)


async def tried(rows):
    """One try, after its time."""
    await rows.clock.wait_for_timer()
    rows.clock.advance(RETRY_S)


async def test_nothing_is_asked_while_nothing_is_wrong(watch, rows, told):
    assert (watch.away, told, rows.units) == (False, [], 0)


async def test_many_failures_are_one_loss(watch, told):
    for _ in range(3):
        watch.lost()
    assert (watch.away, told) == (True, [True])


async def test_it_is_tried_until_it_answers(watch, rows, told, turns):
    rows.away = True
    watch.lost()
    for number in range(1, 4):
        await tried(rows)
        await turns(lambda tries=number: rows.units == tries)
        assert (watch.away, told) == (True, [True])
    rows.away = False
    await tried(rows)
    await turns(lambda: not watch.away)
    assert (told, rows.units) == ([True, False], 4)


async def test_the_next_loss_is_told_again(watch, rows, told, turns):
    for number in range(1, 3):
        watch.lost()
        await tried(rows)
        await turns(lambda times=number: told == [True, False] * times)
    assert not watch.away


async def test_it_waits_between_two_tries(watch, rows, told):
    watch.lost()
    assert await rows.clock.wait_for_timer() == RETRY_S
    rows.clock.advance(RETRY_S - 0.001)
    assert rows.units == 0
