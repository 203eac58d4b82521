"""One session's shell: what the rule decides becomes rows, frames, signals and counts."""

import asyncio
import base64
import json
from dataclasses import replace

import pytest

from bothy_server.identity.app.api import find_device
from bothy_server.terminal.app.rendezvous import to_row
from bothy_server.terminal.domain.admission import HostIdentity
from bothy_server.terminal.domain.session import Row, SessionState
from bothy_server.terminal.domain.signals import SessionPaired, SessionRedial
from bothy_wire.frames import HostSessionOpen, SideAccepted, SidePaired, SideReady, SideUnpaired, encode
from bothy_wire.signing import thumbprint

OPENING, ACTIVE, DETACHED, CLOSED = SessionState
OPEN_TIMEOUT_S, START_TIMEOUT_S, REDIAL_AFTER_S, STALE_RIGHT_S = 20, 30, 0.5, 600
ACCEPTED, PAIRED, UNPAIRED = encode(SideAccepted()), encode(SidePaired()), encode(SideUnpaired())
READY = encode(SideReady()).encode()


@pytest.fixture
async def session(rows, device, host):
    return await rows.session(device, host)


def claims(side):
    """Of the session token that a device was given last."""
    token = json.loads(side.told[-1])["session_token"]
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


# ---- both sides -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["device", "host"])
async def test_two_sides_meet(board, rows, session, device, first):
    if first == "device":
        client = await board.accepted(board.device(session))
        host = board.host(session)
    else:
        host = await board.accepted(board.host(session))
        client = board.device(session)
    await board.until(lambda: {client, host} in board.pump.joined)
    assert host.told == [ACCEPTED, PAIRED]
    assert client.told[0] == ACCEPTED
    given = claims(client)
    assert (given["sub"], given["host"], given["device"]) == (str(session.id), str(session.host_id), str(device.id))
    assert (given["profile"], given["session_user"]) == ("shell", "alex-shell")
    async with rows.uow() as unit:
        assert given["cnf"] == {"jkt": thumbprint((await find_device(unit, device.id)).channel_key)}
    record = await rows.record(session.id)
    assert (record.state, record.paired_seq, record.paired_at is not None) == (OPENING, 1, True)
    assert board.counted == []


async def test_a_side_that_goes_leaves_the_row_detached_and_its_counterpart_waiting(board, rows, device, host):
    session = await rows.session(device, host, ACTIVE)
    client, side = await board.pair(session)
    client.vanish()
    record = await board.row(session, DETACHED)
    assert record.paired_seq == 2
    assert side.told == [ACCEPTED, PAIRED, UNPAIRED]
    assert side.discards
    assert board.pump.parted == [(side, client)]
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]


async def test_a_detached_session_is_active_again_when_its_sides_meet(board, rows, device, host):
    session = await rows.session(device, host, DETACHED)
    await board.pair(session)
    record = await rows.record(session.id)
    assert (record.state, record.detached_at, record.paired_seq) == (ACTIVE, None, 2)
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]


async def test_a_write_of_an_older_pairing_changes_nothing(board, rows, device, host):
    """The sides met elsewhere meanwhile (E4b)."""
    session = await rows.session(device, host, ACTIVE)
    client, _ = await board.pair(session)
    await rows.run("UPDATE terminal_sessions SET paired_seq = paired_seq + 1 WHERE id = :id", id=session.id)
    client.vanish()
    await board.until(lambda: not board.switchboard._sessions[session.id]._under_way)
    assert (await rows.record(session.id)).state is ACTIVE
    assert await rows.events(session_id=session.id) == []


async def test_a_program_that_does_not_run_in_time_ends_the_opening(board, rows, session):
    client, host = await board.pair(session)
    rows.clock.advance(START_TIMEOUT_S)
    record = await board.row(session, CLOSED, "open_failed", "start_timeout")
    assert await rows.audit(session_id=session.id) == [("terminal.terminate", "start_timeout")]
    board.switchboard.changed([record])  # the tail
    assert await board.closed(client) == await board.closed(host) == (4100, "open_failed: start_timeout")
    assert board.counted == []


async def test_where_a_person_is_asked_the_others_hear_of_the_pair_and_no_clock_runs(board, rows, device):
    session = await rows.session(device, await rows.host(device, local_confirm=True))
    await board.pair(session)
    assert board.signals.sent == [SessionPaired(session.host_id, session.id)]
    rows.clock.advance(10 * START_TIMEOUT_S)
    assert (await rows.record(session.id)).state is OPENING


# ---- who does not stay ----------------------------------------------------------------------------------------------


async def test_a_foreign_side_is_refused_like_an_unknown_session(board, rows, session):
    other_device, other_host = await rows.device(), await rows.host()
    for side in (
        board.device(session, device_id=other_device.id),
        board.host(session, host_id=other_host.id),
        board.host(session, host_id=session.device_id),
    ):
        assert await board.closed(side) == (4101, "identify_refused")
        assert side.told == []


async def test_a_side_of_a_session_that_ended_is_told_the_reason(board, rows, device, host):
    session = await rows.session(device, host, CLOSED)
    assert await board.closed(board.device(session)) == (4100, "client_closed")
    assert await board.closed(board.host(session)) == (4100, "client_closed")


async def test_the_newest_attach_wins(board, rows, session):
    client, host = await board.pair(session)
    phone = await rows.device(session.person_id)
    await rows.run(
        "UPDATE terminal_sessions SET attach_seq = 2, device_id = :phone WHERE id = :id", id=session.id, phone=phone.id
    )
    board.switchboard.expect(await rows.record(session.id))  # the signal of the attach
    assert await board.closed(client) == (4103, "replaced")
    assert host.closed is None
    assert host.told[-1] == UNPAIRED
    late = board.device(session, attach_seq=1)
    assert (await board.closed(late))[0] == 4103
    await board.accepted(board.device(session, attach_seq=2, device_id=phone.id))


async def test_an_attach_that_nobody_heard_of_is_seen_by_the_check(board, rows, session):
    client = await board.accepted(board.device(session))
    await rows.run("UPDATE terminal_sessions SET attach_seq = 2 WHERE id = :id", id=session.id)
    host = await board.accepted(board.host(session))
    assert await board.closed(client) == (4103, "replaced")
    assert (host.closed, board.pump.joined) == (None, [])


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM host_owners WHERE host_id = (SELECT host_id FROM terminal_sessions WHERE id = :id)",
        "UPDATE devices SET revoked_at = now() WHERE id = (SELECT device_id FROM terminal_sessions WHERE id = :id)",
        "UPDATE persons SET disabled_at = now() WHERE id = (SELECT person_id FROM terminal_sessions WHERE id = :id)",
        "UPDATE hosts SET state = 'disabled' WHERE id = (SELECT host_id FROM terminal_sessions WHERE id = :id)",
    ],
)
async def test_without_the_right_at_that_moment_nobody_meets_and_the_session_is_over(board, rows, session, change):
    await rows.run(change, id=session.id)
    client, host = board.device(session), board.host(session)
    assert await board.closed(client) == await board.closed(host) == (4100, "revoked")
    await board.row(session, CLOSED, "revoked")
    assert await rows.audit(session_id=session.id) == [("terminal.terminate", "revoked")]
    assert board.pump.joined == []


async def test_a_session_that_ended_between_read_and_check_is_told_so(board, rows, session):
    client = await board.accepted(board.device(session))
    await rows.run(
        "UPDATE terminal_sessions SET state = 'closed', closed_at = now(), close_reason = 'idle' WHERE id = :id",
        id=session.id,
    )
    host = board.host(session)
    assert await board.closed(host) == (4100, "idle")
    assert await board.closed(client) == (4100, "idle")


async def test_an_end_that_the_event_log_brings_closes_both_sides(board, rows, session):
    client, host = await board.pair(session)
    board.switchboard.changed([replace(session, state=CLOSED, close_reason="max_duration")])
    assert await board.closed(client) == await board.closed(host) == (4100, "max_duration")


# ---- lone sides -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arrive", "counted"), [("device", "client"), ("host", "host")])
async def test_a_side_alone_is_closed_and_counted_and_the_opening_is_over(board, rows, session, arrive, counted):
    side = await board.accepted(getattr(board, arrive)(session))
    rows.clock.advance(OPEN_TIMEOUT_S - 0.001)
    assert side.closed is None
    rows.clock.advance(0.001)
    assert await board.closed(side) == (4102, "terminal_host_unavailable")
    assert board.counted == [counted]
    await board.row(session, CLOSED, "open_failed", "open_timeout")
    assert await rows.audit(session_id=session.id) == [("terminal.terminate", "open_timeout")]
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]


async def test_both_sides_alone_on_two_nodes_end_the_session_once(board, new_board, rows, session):
    elsewhere = new_board()
    client, host = await board.accepted(board.device(session)), await elsewhere.accepted(elsewhere.host(session))
    rows.clock.advance(OPEN_TIMEOUT_S)
    assert (await board.closed(client))[0] == (await elsewhere.closed(host))[0] == 4102
    assert (board.counted, elsewhere.counted) == (["client"], ["host"])
    await board.row(session, CLOSED, "open_failed", "open_timeout")
    assert await rows.audit(session_id=session.id) == [("terminal.terminate", "open_timeout")]
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]


@pytest.mark.parametrize("local_confirm", [False, True])
async def test_an_expectation_that_nobody_meets_ends_the_opening(board, rows, device, local_confirm):
    session = await rows.session(device, await rows.host(device, local_confirm=local_confirm))
    board.switchboard.expect(session)
    rows.clock.advance(OPEN_TIMEOUT_S)
    await board.row(session, CLOSED, "open_failed", "open_timeout")
    assert await rows.audit(session_id=session.id) == [("terminal.terminate", "open_timeout")]
    assert board.counted == []
    await board.until(lambda: not board.switchboard.registered())


async def test_an_expectation_ends_nothing_that_met_elsewhere(board, new_board, rows, session):
    board.switchboard.expect(session)
    await new_board().pair(session)
    rows.clock.advance(OPEN_TIMEOUT_S)
    await board.until(lambda: not board.switchboard.registered())
    assert (await rows.record(session.id)).state is OPENING


async def test_a_device_alone_with_a_running_session_asks_the_host_that_is_here(board, rows, device, host, link):
    session = await rows.session(device, host, DETACHED)
    await board.accepted(board.device(session))
    rows.clock.advance(REDIAL_AFTER_S)
    await board.until(lambda: link.sent)
    assert [frame.session_id for frame in link.took(HostSessionOpen)] == [session.id]
    assert board.signals.sent == []


async def test_a_device_alone_with_a_running_session_asks_the_node_that_has_the_host(board, rows, device, host):
    session = await rows.session(device, host, DETACHED)
    await board.accepted(board.device(session))
    rows.clock.advance(REDIAL_AFTER_S)
    await board.until(lambda: board.signals.sent)
    assert board.signals.sent == [SessionRedial(session.host_id, session.id)]


# ---- the database is away -------------------------------------------------------------------------------------------


async def test_a_check_that_finds_no_database_sends_the_device_away_and_keeps_the_host(board, rows, session):
    client, host = await board.pair(session)
    client.vanish()
    client = await board.accepted(board.device(session))
    rows.away = True
    board.switchboard.text(host, READY)
    assert (await board.closed(client))[0] == 1013
    assert host.closed is None


async def test_a_detached_that_could_not_be_written_is_written_when_the_database_is_back(board, rows, device, host):
    session = await rows.session(device, host, ACTIVE)
    client, side = await board.pair(session)
    rows.away = True
    client.vanish()
    await rows.clock.wait_for_timer(within=2)
    assert (await rows.record(session.id)).state is ACTIVE
    rows.away = False
    rows.clock.advance(2)
    await board.row(session, DETACHED)
    assert side.closed is None


async def test_an_end_that_could_not_be_written_is_left_to_the_sweep(board, rows, session):
    client = await board.accepted(board.device(session))
    rows.away = True
    rows.clock.advance(OPEN_TIMEOUT_S)
    assert (await board.closed(client))[0] == 4102
    await board.until(lambda: not board.switchboard.registered())
    assert (await rows.record(session.id)).state is OPENING


async def test_while_earlier_decisions_hold_the_sides_of_a_running_session_meet_without_the_database(
    board, rows, device, host
):
    """N1a: a host that was let in before may come back, the device is still here, and its token says what it said."""
    session = await rows.session(device, host, ACTIVE)
    client, side = await board.pair(session)
    board.news.last_current_at = rows.clock.monotonic()
    before = claims(client)
    rows.away = True
    side.vanish()
    assert board.switchboard.remembered_host(session.id) == HostIdentity(host.id, b"s" * 32, 1)
    board.switchboard.text(client, READY)
    side = board.host(session)
    await board.until(lambda: {client, side} in board.pump.joined)
    again = claims(client)
    assert client.closed is None
    assert [again[name] for name in ("sub", "device", "profile")] == [
        before[name] for name in ("sub", "device", "profile")
    ]
    assert again["cnf"] == {"jkt": thumbprint(b"c" * 32)}


@pytest.mark.parametrize("late", [False, True])
async def test_without_an_earlier_decision_that_holds_nobody_meets(board, rows, device, host, late):
    """An opening was never decided on; a right that was seen too long ago may be gone."""
    session = await rows.session(device, host, ACTIVE if late else OPENING)
    client, side = await board.pair(session)
    board.news.last_current_at = rows.clock.monotonic() - (STALE_RIGHT_S + 1 if late else 0)
    rows.away = True
    side.vanish()
    assert board.switchboard.remembered_host(session.id) is None
    board.switchboard.text(client, READY)
    assert (await board.closed(board.host(session)))[0] == 1013
    assert len(board.pump.joined) == 1


# ---- defects --------------------------------------------------------------------------------------------------------


async def test_a_defect_in_one_session_closes_that_one_only(board, rows, device, host, session):
    healthy = await board.pair(await rows.session(device, host))
    board.pump.broken = True
    client, side = board.device(session), board.host(session)
    assert await board.closed(client) == await board.closed(side) == (1011, "")
    board.pump.broken = False
    assert [each.closed for each in healthy] == [None, None]
    await board.until(lambda: not board.switchboard.has(session.id))
    await board.pair(session)


async def test_a_defect_in_a_read_closes_that_session_only(board, rows, device, host, session, monkeypatch):
    healthy = await board.pair(await rows.session(device, host))

    async def broken(session_id):
        raise ZeroDivisionError("a defect of ours")

    monkeypatch.setattr(board.switchboard._means.reader, "read", broken)
    assert (await board.closed(board.device(session)))[0] == 1011
    monkeypatch.undo()
    assert [each.closed for each in healthy] == [None, None]
    await board.accepted(board.device(session))


async def test_what_was_under_way_when_a_defect_came_is_given_up(board, session, monkeypatch):
    """Its answer belongs to a state that is gone."""
    began = asyncio.Event()

    async def read(session_id):
        if not began.is_set():
            began.set()
            await asyncio.Event().wait()
        raise ZeroDivisionError("a defect of ours")

    monkeypatch.setattr(board.switchboard._means.reader, "read", read)
    first = board.device(session)
    await began.wait()
    second = board.host(session)
    assert (await board.closed(first))[0] == (await board.closed(second))[0] == 1011
    await board.until(lambda: not board.switchboard.registered())


# ---- rows -----------------------------------------------------------------------------------------------------------


async def test_the_rule_sees_what_the_row_says(rows, device):
    host = await rows.host(device, local_confirm=True)
    session = await rows.session(device, host, paired=True)
    assert to_row(session) == Row(OPENING, attach_seq=1, paired=True, paired_seq=1, local_confirm=True)
    ended = await rows.session(device, host, CLOSED)
    assert to_row(ended) == Row(CLOSED, attach_seq=1, close_reason="client_closed", local_confirm=True)
