"""What a reader missed: all that it may see, in order, or the word that it has to read everything anew."""

import pytest

from bothy_server.events.app.feed import Told
from bothy_server.events.app.replay import ReplayLimits, replay
from bothy_server.kernel.unit import Event

LIMITS = ReplayLimits(most=6, batch=2)


@pytest.fixture
async def robin(rows):
    return await rows.device()


async def replayed(rows, device, after):
    return [each async for each in replay(rows.uow, device.id, after, LIMITS)]


async def test_what_came_behind_an_id_is_told_in_batches_that_say_how_far_they_came(rows, node, robin):
    own, foreign = await rows.host(robin), await rows.host(await rows.device())
    start = await node.head()
    emitted = [Event("host.updated", host_id=each.id) for each in (own, foreign, foreign, own, own)]
    one, _, _, four, five = await node.emit(*emitted)
    batches = await replayed(rows, robin, start)
    told = [[(each.type, each.position) for each in batch] for batch in batches]
    assert told == [
        [("host.updated", one), (None, one + 1)],
        [("host.updated", four), (None, four)],
        [("host.updated", five), (None, five)],
    ]
    assert batches[0][0].data["host_id"] == own.id
    assert set(batches[0][0].data) == {"host_id", "at"}


async def test_nothing_behind_the_head_is_said_too(rows, node, robin):
    head = await node.head()
    assert await replayed(rows, robin, head) == [(Told(None, {}, head),)]


@pytest.mark.parametrize("after", [None, -1, 10**17])
async def test_what_cannot_be_continued_begins_anew(rows, node, robin, after):
    ((reset,),) = await replayed(rows, robin, after)
    assert reset == Told("reset", {}, await node.head())


async def test_who_was_away_for_too_many_events_begins_anew(rows, node, robin):
    host = await rows.host(robin)
    start = await node.head()
    await node.emit(*[Event("host.updated", host_id=host.id)] * LIMITS.most)
    assert len(await replayed(rows, robin, start)) == LIMITS.most / LIMITS.batch + 1
    await node.emit(Event("host.updated", host_id=host.id))
    assert await replayed(rows, robin, start) == [(Told("reset", {}, start + LIMITS.most + 1),)]


async def test_a_floor_above_the_id_begins_anew(rows, node, robin):
    start = (await node.emit(Event("keys.changed"), Event("keys.changed")))[0]
    ((floor,),) = await rows.run("SELECT position FROM event_log_floor")
    await rows.run("UPDATE event_log_floor SET position = :to", to=start + 1)
    try:
        assert await replayed(rows, robin, start) == [(Told("reset", {}, start + 1),)]
        assert await replayed(rows, robin, start + 1) == [(Told(None, {}, start + 1),)]
    finally:
        await rows.run("UPDATE event_log_floor SET position = :to", to=floor)


async def test_a_device_that_may_not_act_is_told_nothing(rows, node, robin):
    await rows.run("UPDATE devices SET revoked_at = now() WHERE id = :id", id=robin.id)
    assert await replayed(rows, robin, None) == []
    assert await replayed(rows, robin, await node.head()) == []


async def test_no_connection_is_held_while_a_reader_takes_a_batch(rows, node, robin):
    start = await node.head()
    await node.emit(*[Event("keys.changed")] * 3)
    batches = replay(rows.uow, robin.id, start, LIMITS)
    await anext(batches)
    async with rows.uow():
        pass  # the task is in no unit: they do not nest
    await batches.aclose()
