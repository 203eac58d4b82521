"""All rendezvous of a node: who is led where, what is bounded, what is counted."""

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from bothy_kit.recorded import RecordedSide
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.frames import SideReady, encode

OPENING, ACTIVE, DETACHED, CLOSED = SessionState
READY = encode(SideReady()).encode()


@pytest.fixture
async def session(rows, device, host):
    return await rows.session(device, host)


@pytest.fixture
async def other(rows, device, host):
    return await rows.session(device, host)


@pytest.fixture
def new_session(rows, device, host):
    return lambda: rows.session(device, host)


async def test_sides_and_pairs_are_counted_as_they_come_and_go(board, session, other):
    switchboard = board.switchboard
    assert (switchboard.sides, switchboard.pairs, switchboard.pending, switchboard.registered()) == (0, 0, 0, set())
    lone = await board.accepted(board.device(other))
    assert (switchboard.sides, switchboard.pairs, switchboard.pending) == (1, 0, 1)
    device, _ = await board.pair(session)
    assert (switchboard.sides, switchboard.pairs, switchboard.pending) == (3, 1, 1)
    assert switchboard.registered() == {session.id, other.id}
    assert switchboard.has(session.id)
    lone.vanish()
    device.vanish()
    assert (switchboard.sides, switchboard.pairs, switchboard.pending) == (1, 0, 0)
    await board.until(lambda: not switchboard.has(other.id))


async def test_a_session_is_forgotten_when_nothing_of_it_is_left(board, session):
    device, host = await board.pair(session)
    host.vanish()
    device.vanish()
    await board.row(session, OPENING)
    board.rows.clock.advance(100)  # the program was given time to run
    await board.row(session, CLOSED, "open_failed", "start_timeout")
    await board.until(lambda: not board.switchboard.registered())


# ---- bounds ---------------------------------------------------------------------------------------------------------


async def test_sides_that_wait_are_bounded_and_pairs_are_not(new_board, session, other):
    board = new_board(pending=1)
    switchboard = board.switchboard
    assert switchboard.has_room(session.id)
    await board.accepted(board.device(session))
    assert not switchboard.has_room(other.id)
    host = board.host(session)
    await board.until(lambda: board.pump.joined)
    assert switchboard.has_room(other.id)
    host.vanish()
    assert switchboard.has_room(other.id), "who was paired once keeps no stranger out"


async def test_expectations_are_bounded_and_sides_are_served_beyond(new_board, session, other):
    board = new_board(expectations=1)
    board.switchboard.expect(session)
    board.switchboard.expect(other)
    assert board.switchboard.registered() == {session.id}
    board.switchboard.expect(session)  # known already, so it is taken in
    await board.pair(other)
    board.rows.clock.advance(20)
    await board.row(session, CLOSED, "open_failed", "open_timeout")
    assert (await board.rows.record(other.id)).state is OPENING


# ---- leading the way ------------------------------------------------------------------------------------------------


async def test_a_signal_about_a_session_that_is_not_here_changes_nothing(board, session):
    board.switchboard.paired_elsewhere(session.id)
    board.switchboard.changed([replace(session, state=CLOSED, close_reason="idle")])
    assert board.switchboard.registered() == set()


async def test_a_session_paired_elsewhere_is_spared_where_a_person_is_asked(board, rows, device):
    asks, does_not = await rows.host(device, local_confirm=True), await rows.host(device)
    spared, ended = await rows.session(device, asks), await rows.session(device, does_not)
    for each in (spared, ended):
        board.switchboard.expect(each)
        board.switchboard.paired_elsewhere(each.id)
    rows.clock.advance(20)
    await board.row(ended, CLOSED, "open_failed", "open_timeout")
    await board.until(lambda: not board.switchboard.registered())
    assert (await rows.record(spared.id)).state is OPENING


async def test_a_side_that_was_unpaired_says_that_it_is_ready(board, session):
    device, host = await board.pair(session)
    device.vanish()
    assert host.discards
    board.switchboard.text(host, READY)
    assert not host.discards
    again = board.device(session)
    await board.until(lambda: {again, host} in board.pump.joined)


@pytest.mark.parametrize("payload", [b'{"type":"side.accepted"}', b'{"type":"side.ready","more":1}', b"\xff", b""])
async def test_any_other_text_is_a_violation(board, session, payload):
    device, host = await board.pair(session)
    device.vanish()
    board.switchboard.text(host, payload)
    assert await board.closed(host) == (4105, "side.ready expected")


async def test_a_second_ready_is_a_violation(board, session):
    device, host = await board.pair(session)
    device.vanish()
    board.switchboard.text(host, READY)
    board.switchboard.text(host, READY)
    assert (await board.closed(host))[0] == 4105


async def test_a_side_that_takes_nothing_is_closed_and_its_counterpart_waits(board, session):
    device, host = await board.pair(session)
    board.switchboard.stalled(device)
    assert await board.closed(device) == (4106, "stalled")
    assert host.closed is None
    assert host.discards


async def test_what_a_side_says_after_it_went_is_ignored(board):
    stranger = RecordedSide(board.switchboard)
    board.switchboard.text(stranger, READY)
    board.switchboard.stalled(stranger)
    board.switchboard.gone(stranger, 1006)
    assert (stranger.closed, stranger.told, board.switchboard.sides) == (None, [], 0)


async def test_an_older_side_that_goes_takes_no_newer_one_along(board, session):
    older = await board.accepted(board.device(session))
    newer = await board.accepted(board.device(session))
    assert await board.closed(older) == (4103, "replaced")
    await board.until(lambda: board.switchboard.sides == 1)
    older.vanish()
    board.switchboard.gone(older, 1006)
    host = board.host(session)
    await board.until(lambda: {newer, host} in board.pump.joined)


async def test_a_second_host_side_takes_the_place_of_the_first(board, session):
    first = await board.accepted(board.host(session))
    second = await board.accepted(board.host(session))
    assert (await board.closed(first))[0] == 1000
    device = board.device(session)
    await board.until(lambda: {device, second} in board.pump.joined)


# ---- the node leaves ------------------------------------------------------------------------------------------------


async def test_at_the_stop_every_side_is_told(board, session, other):
    sides = [*await board.pair(session), await board.accepted(board.host(other))]
    emptied = asyncio.create_task(board.switchboard.emptied(10))
    board.switchboard.close_all(1012, "the node is leaving")
    await emptied
    assert [side.closed for side in sides] == [(1012, "the node is leaving")] * 3
    assert board.switchboard.sides == 0


async def test_the_stop_waits_no_longer_than_it_may(board, session):
    side = await board.accepted(board.device(session))
    emptied = asyncio.create_task(board.switchboard.emptied(10))
    await board.rows.clock.wait_for_timer(within=10)
    assert not emptied.done()
    board.rows.clock.advance(10)
    await emptied
    assert side.closed == (1006, ""), "it is dropped"


async def test_a_node_that_stopped_ends_nothing_any_more(board, rows, session):
    side = await board.accepted(board.device(session))
    board.switchboard.expect(session)
    board.switchboard.stop()
    rows.clock.advance(1000)
    side.vanish()
    assert (side.closed, board.counted) == (None, [])
    assert await rows.record(session.id) == session


async def test_an_empty_node_waits_for_nobody(board):
    await board.switchboard.emptied(10)


# ---- the node drains ------------------------------------------------------------------------------------------------


async def test_a_node_that_drains_expects_nobody(board, rows, session, other):
    board.switchboard.expect(session)
    board.switchboard.drain()
    board.switchboard.expect(other)
    assert board.switchboard.registered() == set()
    rows.clock.advance(1000)
    assert await rows.record(session.id) == session, "and ends no row"


async def test_who_comes_during_a_drain_is_still_served_and_no_host_is_asked(board, rows, session):
    """An open or attach that was under way must not fail for it."""
    board.switchboard.drain()
    device, host = await board.pair(session)
    host.vanish()
    await board.until(lambda: device.discards)
    board.switchboard.text(device, READY)
    rows.clock.advance(1)
    host = board.host(session)
    await board.until(lambda: {device, host} in board.pump.joined)
    assert board.signals.sent == []


async def test_sides_leave_in_batches_the_lone_ones_first(board, new_session):
    pairs = [await board.pair(await new_session()) for _ in range(3)]
    lone = await board.accepted(board.device(await new_session()))
    gone = 1012, "bye"
    board.switchboard.dismiss(2, *gone)
    assert lone.closed == gone
    assert sorted(tuple(side.closed for side in pair) for pair in pairs if pair[0].closed) == [(gone, gone)] * 2
    assert board.switchboard.sides == 7, "told, not gone"
    board.switchboard.dismiss(2, *gone)
    assert [side.closed for pair in pairs for side in pair] == [gone] * 6, "who was told counts no more"
    await board.until(lambda: board.switchboard.sides == 0)
    late = board.device(await new_session())
    board.switchboard.dismiss(2, *gone)
    assert late.closed == gone


# ---- the database is away -------------------------------------------------------------------------------------------


async def test_every_session_hears_that_the_database_went_and_came_back(board, rows, session, other):
    host = (await board.pair(session))[1]
    rows.away = True
    stranger = board.device(other)
    assert (await board.closed(stranger))[0] == 1013
    assert host.closed is None
    rows.away = False
    await rows.clock.wait_for_timer(within=2)
    rows.clock.advance(2)
    await board.until(lambda: board.switchboard._means.storage.away is False)
    again = await board.accepted(board.device(other))
    assert again.closed is None


async def test_a_session_that_nobody_knows_is_refused(board, session):
    unknown = replace(session, id=UUID(int=1))
    assert (await board.closed(board.device(unknown)))[0] == 4101
    await board.until(lambda: not board.switchboard.registered())
