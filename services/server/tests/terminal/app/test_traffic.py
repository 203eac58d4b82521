"""What passed is written once: in batches, at the end of a pairing, and also when the database was away in between."""

import asyncio

import pytest

from bothy_kit.recorded import RecordedSide
from bothy_server.terminal.app.traffic import Traffic, TrafficLimits
from bothy_server.terminal.domain.session import SessionState

LIMITS = TrafficLimits(interval=60, retry=2)


@pytest.fixture
async def traffic(rows):
    traffic = Traffic(rows.uow, rows.clock, LIMITS)
    running = asyncio.create_task(traffic.run())
    yield traffic
    running.cancel()
    await asyncio.wait([running])


@pytest.fixture
async def pair(rows, traffic):
    return await new_pair(rows, traffic)


async def new_pair(rows, traffic):
    """A running session whose last frame is old, and its two sides."""
    device = await rows.device()
    session = await rows.session(device, await rows.host(device), SessionState.ACTIVE)
    await rows.run("UPDATE terminal_sessions SET last_frame_at = now() - interval '1 h' WHERE id = :id", id=session.id)
    sides = RecordedSide(None), RecordedSide(None)
    traffic.joined(session.id, *sides)
    return session, *sides


async def written(rows, session):
    (row,) = await rows.run(
        "SELECT bytes_in, bytes_out, last_frame_at > now() - interval '1 min' AS fresh FROM terminal_sessions"
        " WHERE id = :id",
        id=session.id,
    )
    return tuple(row)


async def pass_interval(rows, seconds=LIMITS.interval):
    """Let the timer fire, and what follows happen."""
    await rows.clock.wait_for_timer()
    rows.clock.advance(seconds)
    await rows.clock.wait_for_timer()


async def test_what_passed_is_written_once_an_interval(rows, traffic, pair):
    session, device, host = pair
    device.forwarded_bytes, host.forwarded_bytes = 3, 500
    await rows.clock.wait_for_timer()
    rows.clock.advance(LIMITS.interval - 1)
    assert await written(rows, session) == (0, 0, False)
    await pass_interval(rows, 1)
    assert await written(rows, session) == (3, 500, True)
    host.forwarded_bytes = 700
    await pass_interval(rows)
    assert await written(rows, session) == (3, 700, True)


async def test_a_session_in_which_nothing_passed_is_not_written(rows, traffic, pair):
    busy, device, _ = await new_pair(rows, traffic)
    device.forwarded_bytes = 1
    await pass_interval(rows)
    assert await written(rows, pair[0]) == (0, 0, False)
    assert await written(rows, busy) == (1, 0, True)


async def test_the_end_of_a_pairing_is_written_at_once_and_counts_nobody_elses_bytes(rows, traffic, pair):
    session, device, host = pair
    device.forwarded_bytes, host.forwarded_bytes = 10, 20
    traffic.parted(session.id)
    traffic.parted(session.id)
    await asyncio.sleep(0)
    await rows.clock.wait_for_timer()
    assert await written(rows, session) == (10, 20, True)
    newer = RecordedSide(None)
    traffic.joined(session.id, newer, host)
    newer.forwarded_bytes, host.forwarded_bytes = 1, 25
    await pass_interval(rows)
    assert await written(rows, session) == (11, 25, True)


async def test_many_sessions_are_one_write(rows, traffic):
    pairs = [await new_pair(rows, traffic) for _ in range(5)]
    for _, device, _ in pairs:
        device.forwarded_bytes = 1
    before = rows.units
    await pass_interval(rows)
    assert rows.units == before + 1
    assert [await written(rows, session) for session, *_ in pairs] == [(1, 0, True)] * 5


async def test_nothing_is_lost_while_the_database_is_away(rows, traffic, pair):
    session, device, host = pair
    device.forwarded_bytes = 5
    rows.away = True
    await pass_interval(rows)
    host.forwarded_bytes = 6
    traffic.parted(session.id)
    rows.away = False
    await pass_interval(rows, LIMITS.retry)
    assert await written(rows, session) == (5, 6, True)


async def test_the_last_pairs_of_a_node_are_written_when_it_stops(rows):
    traffic = Traffic(rows.uow, rows.clock, LIMITS)
    session, device, _ = await new_pair(rows, traffic)
    running = asyncio.create_task(traffic.run())
    await rows.clock.wait_for_timer()
    device.forwarded_bytes = 9
    traffic.parted(session.id)
    running.cancel()
    await asyncio.wait([running])
    assert await written(rows, session) == (9, 0, True)
