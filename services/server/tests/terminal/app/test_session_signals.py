"""Signals and events about sessions: the rows decide what a node does."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from bothy_server.hosts.domain.signals import HostClose
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import Event, StorageUnavailable
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.app.session_signals import SessionSignals
from bothy_server.terminal.domain.session import SessionState
from bothy_server.terminal.domain.signals import SessionOpen, SessionPaired, SessionRedial
from bothy_wire.frames import HostSessionClose, HostSessionOpen

OPENING, ACTIVE, DETACHED, CLOSED = SessionState
NOBODY = UUID(int=1)
OPEN_TIMEOUT_S = 20


@pytest.fixture
def session_signals(rows, board, links):
    return SessionSignals(rows.uow, board.switchboard, HostSessions(rows.uow, links), links)


@pytest.fixture
async def session(rows, device, host):
    return await rows.session(device, host)


def logged(*events):
    return [LoggedEvent(position, event, datetime.now(UTC)) for position, event in enumerate(events, 1)]


def dialled(link):
    return [frame.session_id for frame in link.took(HostSessionOpen)]


def told_closed(link):
    return [(frame.session_id, frame.reason) for frame in link.took(HostSessionClose)]


# ---- signals --------------------------------------------------------------------------------------------------------


async def test_handle_signal_session_open_expects_on_every_node(session_signals, board, rows, device, session):
    """Here the host is not connected: the node expects the sides and dials nobody; they meet here when they come."""
    await session_signals.handle([SessionOpen(session.host_id, session.id)])
    assert board.switchboard.registered() == {session.id}
    host = await board.accepted(board.host(session))
    client = board.device(session)
    await board.until(lambda: {client, host} in board.pump.joined)


async def test_the_node_of_the_host_asks_it_to_dial_once(session_signals, board, session, link):
    await session_signals.handle([SessionOpen(session.host_id, session.id)])
    assert dialled(link) == [session.id]
    assert board.switchboard.registered() == {session.id}


async def test_an_attach_to_a_running_session_dials_nobody_and_replaces_the_older_device(
    session_signals, board, rows, device, host, link
):
    """The host's data connection waits already; a missing one heals by itself (E6, L6)."""
    session = await rows.session(device, host, ACTIVE)
    client, side = await board.pair(session)
    await rows.run("UPDATE terminal_sessions SET attach_seq = 2 WHERE id = :id", id=session.id)
    await session_signals.handle([SessionOpen(host.id, session.id)])
    assert dialled(link) == []
    assert (await board.closed(client))[0] == 4103
    assert side.closed is None


@pytest.mark.parametrize("state", [ACTIVE, DETACHED])
async def test_a_running_session_is_expected_and_its_host_is_not_asked(
    session_signals, board, rows, device, host, link, state
):
    session = await rows.session(device, host, state)
    side = await board.accepted(board.host(session))
    await session_signals.handle([SessionOpen(host.id, session.id)])
    assert board.switchboard.registered() == {session.id}
    assert (side.closed, link.sent) == (None, [])


async def test_a_late_signal_about_a_session_that_ended_tells_the_host(
    session_signals, board, rows, device, host, link
):
    session = await rows.session(device, host, CLOSED)
    await session_signals.handle([SessionOpen(host.id, session.id)])
    assert board.switchboard.registered() == set()
    assert told_closed(link) == [(session.id, "client_closed")]


@pytest.mark.parametrize("kind", [SessionOpen, SessionPaired, SessionRedial])
async def test_a_signal_whose_ids_do_not_belong_together_changes_nothing(
    session_signals, board, rows, device, session, link, kind
):
    other = await rows.host(device)
    await session_signals.handle([kind(other.id, session.id), kind(session.host_id, NOBODY)])
    assert board.switchboard.registered() == set()
    assert link.sent == []


async def test_a_pair_elsewhere_spares_the_expectation(session_signals, board, rows, device):
    session = await rows.session(device, await rows.host(device, local_confirm=True))
    signals = [SessionOpen(session.host_id, session.id), SessionPaired(session.host_id, session.id)]
    await session_signals.handle(signals)
    rows.clock.advance(OPEN_TIMEOUT_S)
    await board.until(lambda: not board.switchboard.registered())
    assert (await rows.record(session.id)).state is OPENING


@pytest.mark.parametrize("state", [OPENING, ACTIVE, DETACHED])
async def test_a_redial_reaches_the_host(session_signals, rows, device, host, link, state):
    session = await rows.session(device, host, state)
    await session_signals.handle([SessionRedial(host.id, session.id)])
    assert dialled(link) == [session.id]


async def test_nobody_is_asked_to_dial_for_a_session_that_ended(session_signals, rows, device, host, link):
    session = await rows.session(device, host, CLOSED)
    await session_signals.handle([SessionRedial(host.id, session.id)])
    assert link.sent == []


async def test_a_batch_is_one_read_and_signals_of_others_are_none(session_signals, rows, device, host, link):
    sessions = [await rows.session(device, host) for _ in range(3)]
    before = rows.units
    await session_signals.handle([SessionOpen(host.id, each.id) for each in sessions])
    assert rows.units == before + 1
    assert dialled(link) == [each.id for each in sessions]
    await session_signals.handle([HostClose(host.id)])
    await session_signals.handle([])
    assert rows.units == before + 1


async def test_a_database_that_is_away_is_told_to_whoever_feeds_the_handler(session_signals, rows, session):
    rows.away = True
    with pytest.raises(StorageUnavailable):
        await session_signals.handle([SessionOpen(session.host_id, session.id)])


# ---- events ---------------------------------------------------------------------------------------------------------


def changed(session):
    return Event("terminal_session.changed", host_id=session.host_id, session_id=session.id)


async def close(rows, session, reason="idle"):
    await rows.run(
        "UPDATE terminal_sessions SET state = 'closed', closed_at = now(), close_reason = :reason WHERE id = :id",
        id=session.id,
        reason=reason,
    )


async def test_an_end_reaches_the_sides_and_the_host(session_signals, board, rows, session, link):
    client, side = await board.pair(session)
    await close(rows, session)
    await session_signals.on_events(logged(changed(session)))
    assert await board.closed(client) == await board.closed(side) == (4100, "idle")
    assert told_closed(link) == [(session.id, "idle")]


async def test_an_end_reaches_a_host_whose_sides_are_elsewhere(session_signals, rows, session, link):
    await close(rows, session)
    await session_signals.on_events(logged(changed(session)))
    assert told_closed(link) == [(session.id, "idle")]


async def test_an_end_reaches_sides_whose_host_is_elsewhere(session_signals, board, rows, session):
    client = await board.accepted(board.device(session))
    await close(rows, session)
    await session_signals.on_events(logged(changed(session)))
    assert await board.closed(client) == (4100, "idle")


async def test_a_change_that_is_no_end_tells_nobody(session_signals, board, rows, device, host, link):
    session = await rows.session(device, host, ACTIVE)
    client, _ = await board.pair(session)
    await session_signals.on_events(logged(changed(session)))
    assert (client.closed, link.sent) == (None, [])


async def test_events_that_concern_nobody_here_are_not_read(session_signals, rows, session):
    before = rows.units
    await session_signals.on_events(
        logged(
            changed(session),
            Event("terminal_session.changed", session_id=NOBODY),
            Event("terminal_session.changed"),
            Event("host.updated", host_id=session.host_id),
            Event("rights.changed", host_id=session.host_id, session_id=session.id),
        )
    )
    assert rows.units == before


# ---- a gap ----------------------------------------------------------------------------------------------------------


async def test_after_a_gap_everything_here_is_read(session_signals, board, rows, device, host, session, link):
    missed_end, missed_open = session, await rows.session(device, host)
    running = await rows.session(device, host, ACTIVE)
    client = await board.accepted(board.device(missed_end))
    healthy = await board.pair(running)
    await close(rows, missed_end)
    await session_signals.on_gap()
    assert await board.closed(client) == (4100, "idle")
    assert told_closed(link) == [(missed_end.id, "idle")]
    assert dialled(link) == [missed_open.id], "H3: an open that was missed is served in time"
    assert board.switchboard.registered() == {missed_open.id, running.id}
    assert [each.closed for each in healthy] == [None, None]


async def test_after_a_gap_a_host_that_may_not_be_told_is_not_dialled(session_signals, board, session, link):
    link.eligible = False
    await session_signals.on_gap()
    assert link.sent == []
    assert board.switchboard.registered() == set()


async def test_an_older_row_that_comes_late_changes_nothing(session_signals, board, rows, session):
    """Reads and events overtake one another (S5)."""
    client, _ = await board.pair(session)
    board.switchboard.changed([replace(session, paired_at=None, paired_seq=0)])
    rows.clock.advance(OPEN_TIMEOUT_S)
    assert (client.closed, board.counted) == (None, [])
