"""Every end of the sweep: when it comes, and that it comes once, however many sweep."""

import asyncio
import logging

import pytest

from bothy_server.identity.app.ports import RightStore
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import Event, StorageUnavailable
from bothy_server.terminal.app.ports import SessionStore
from bothy_server.terminal.app.sweep import Overdue, Sight, Sweep, SweepLimits, SweepStore
from bothy_server.terminal.domain.session import SessionState

OVERDUE = Overdue(open_timeout=30, start_timeout=40, idle=100, detach_grace=200, host_lost=300)
LIMITS = SweepLimits(interval=10, presence_window=30, batch=100, overdue=OVERDUE)
OPENING, ACTIVE, DETACHED, CLOSED = SessionState


@pytest.fixture
async def lab(rows):
    """A device and a host of its own."""
    device = await rows.device()
    return device, await rows.host(device)


@pytest.fixture(autouse=True)
async def alone(rows):
    """What other tests left grows old meanwhile, and a sweep ends whatever it finds."""
    await rows.run("DELETE FROM terminal_sessions")
    await rows.run("DELETE FROM host_grants")


def new_sweep(rows, *, limits=LIMITS, prunes=()):
    return Sweep(rows.uow, rows.clock, limits, prunes)


async def settled(rows, **options):
    """A sweep that has seen the database for a window."""
    sweep = new_sweep(rows, **options)
    await sweep.once()
    rows.clock.advance(LIMITS.presence_window)
    return sweep


async def aged(rows, lab, state, column, seconds, *, paired=False, of_host=False):
    """A session one of whose instants is ``seconds`` old."""
    session = await rows.session(*lab, state, paired=paired)
    table, row_id = ("hosts", session.host_id) if of_host else ("terminal_sessions", session.id)
    await rows.run(
        f"UPDATE {table} SET {column} = now() - make_interval(secs => :s) WHERE id = :id", s=seconds, id=row_id
    )
    return session


ENDS = [
    (OPENING, "opened_at", 30, {}, ("open_failed", "open_timeout")),
    (OPENING, "paired_at", 40, {"paired": True}, ("open_failed", "start_timeout")),
    (ACTIVE, "last_frame_at", 100, {}, ("idle", None)),
    (DETACHED, "detached_at", 200, {}, ("detach_expired", None)),
    (OPENING, "expires_at", 0, {}, ("max_duration", None)),
    (ACTIVE, "expires_at", 0, {}, ("max_duration", None)),
    (DETACHED, "expires_at", 0, {}, ("max_duration", None)),
]


@pytest.mark.parametrize(("state", "column", "limit", "more", "end"), ENDS)
async def test_each_end_comes_behind_its_limit_and_is_told_once(rows, lab, state, column, limit, more, end):
    sweep = await settled(rows)
    early = await aged(rows, lab, state, column, limit - 5, **more)
    late = await aged(rows, lab, state, column, limit + 1, **more)
    assert await sweep.once() == 1
    assert await sweep.once() == 0
    assert (await rows.record(early.id)).state is state
    record = await rows.record(late.id)
    assert (record.state, record.close_reason, record.close_detail) == (CLOSED, *end)
    assert await rows.audit(session_id=late.id) == [("terminal.terminate", end[1] or end[0])]
    assert await rows.events(session_id=late.id) == ["terminal_session.changed"]
    assert rows.signals.committed_ones == []


@pytest.mark.parametrize(
    ("state", "paired", "column"),
    [
        (OPENING, True, "opened_at"),
        (ACTIVE, True, "opened_at"),
        (ACTIVE, True, "paired_at"),
        (DETACHED, True, "paired_at"),
        (DETACHED, True, "last_frame_at"),
        (CLOSED, False, "expires_at"),
    ],
)
async def test_an_instant_that_does_not_count_in_a_state_ends_nothing(rows, lab, state, paired, column):
    sweep = await settled(rows)
    await aged(rows, lab, state, column, 10_000, paired=paired)
    before = await rows.content()
    assert await sweep.once() == 0
    assert await rows.content() == before


async def test_a_session_that_is_doubly_overdue_ends_once(rows, lab):
    sweep = await settled(rows)
    session = await aged(rows, lab, OPENING, "opened_at", 10_000)
    await rows.run("UPDATE terminal_sessions SET expires_at = now() - interval '1 s' WHERE id = :id", id=session.id)
    assert await sweep.once() == 1
    assert (await rows.record(session.id)).close_reason == "max_duration"
    assert len(await rows.audit(session_id=session.id)) == 1


@pytest.mark.parametrize(("state", "paired"), [(OPENING, True), (ACTIVE, False), (DETACHED, False)])
async def test_sessions_of_a_host_that_nobody_saw_are_lost(rows, lab, state, paired):
    sweep = await settled(rows)
    session = await aged(rows, lab, state, "last_seen_at", 295, paired=paired, of_host=True)
    await rows.run("UPDATE terminal_sessions SET opened_at = now() - interval '1 hour' WHERE id = :id", id=session.id)
    assert await sweep.once() == 0
    await rows.run("UPDATE hosts SET last_seen_at = now() - interval '301 s' WHERE id = :id", id=session.host_id)
    assert await sweep.once() == 1
    assert (await rows.record(session.id)).close_reason == "host_lost"


async def test_a_session_opened_on_a_host_just_seen_again_is_not_lost(rows, lab):
    sweep = await settled(rows)
    session = await aged(rows, lab, ACTIVE, "last_seen_at", 1000, of_host=True)
    assert await sweep.once() == 0
    assert (await rows.record(session.id)).state is ACTIVE


async def test_a_start_that_waits_for_the_hosts_own_person_is_spared(rows):
    device = await rows.device()
    host = await rows.host(device, local_confirm=True)
    sweep = await settled(rows)
    session = await aged(rows, (device, host), OPENING, "paired_at", 1000, paired=True)
    assert await sweep.once() == 0
    assert (await rows.record(session.id)).state is OPENING


@pytest.mark.parametrize(("state", "column", "limit", "more", "end"), ENDS)
async def test_n1_nothing_ends_before_the_database_was_seen_for_a_window(rows, lab, state, column, limit, more, end):
    """But for the end that every row carries in itself."""
    sweep, by_itself = await settled(rows), end[0] == "max_duration"
    rows.away = True
    with pytest.raises(StorageUnavailable):
        await sweep.once()
    rows.away = False
    late = await aged(rows, lab, state, column, limit + 1, **more)
    assert await sweep.once() == by_itself
    rows.clock.advance(LIMITS.presence_window - 1)
    assert await sweep.once() == 0
    rows.clock.advance(1)
    assert await sweep.once() == (not by_itself)
    assert (await rows.record(late.id)).close_reason == end[0]


# ---- rights that end ------------------------------------------------------------------------------------------------


async def grant(rows, device, host, session_user="alex-shell", *, for_s=None):
    """A grant that ends so many seconds from the database's present."""
    async with rows.uow() as unit:
        await unit.of(RightStore).add_grant(device.person_id, host.id, session_user, None)
    if for_s is not None:
        await rows.run(
            "UPDATE host_grants SET expires_at = now() + make_interval(secs => :s)"
            ' WHERE person_id = :id AND "session_user" = :user',
            s=for_s,
            id=device.person_id,
            user=session_user,
        )


@pytest.fixture
async def guest(rows, lab):
    """A device whose person owns nothing, and the host of somebody else."""
    return await rows.device(), lab[1]


@pytest.mark.parametrize("state", [OPENING, ACTIVE, DETACHED])
async def test_a_session_ends_with_the_grant_that_carried_it_and_is_told_once(rows, guest, state):
    device, host = guest
    await grant(rows, device, host)
    session = await rows.session(device, host, state)
    sweep = new_sweep(rows)
    assert await sweep.once() == 0
    await grant(rows, device, host, for_s=0)
    assert await sweep.once() == 1, "also before the database was seen for a window"
    assert (await rows.record(session.id)).close_reason == "revoked"
    assert await rows.audit(session_id=session.id) == [("terminal.terminate", "revoked")]
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    assert await sweep.once() == 0


async def test_a_session_goes_on_with_what_else_carries_it(rows, lab, guest):
    device, host = guest
    await grant(rows, device, host, "robin-shell", for_s=0)
    await grant(rows, device, host)
    await grant(rows, lab[0], host, for_s=0)
    sessions = [await rows.session(device, host, ACTIVE), await rows.session(*lab, ACTIVE)]
    assert await new_sweep(rows).once() == 0
    assert [await rows.record(each.id) for each in sessions] == sessions


async def next_end(rows):
    async with rows.uow() as unit:
        return await unit.of(SweepStore).next_end()


async def test_the_next_end_is_the_earliest_of_sessions_and_grants(rows, lab, guest):
    device, host = guest
    assert await next_end(rows) is None
    await grant(rows, device, host, for_s=300)
    assert 299 < await next_end(rows) <= 300, "also before it carries a session"
    await grant(rows, device, host, "robin-shell", for_s=-5)
    assert 299 < await next_end(rows) <= 300, "what is over and carries nothing is nobody's affair"
    await aged(rows, lab, ACTIVE, "expires_at", -200)
    assert 199 < await next_end(rows) <= 200
    session = await rows.session(device, host)
    await rows.run("DELETE FROM host_grants")
    assert await next_end(rows) <= 0, f"{session.id} is due"


async def test_it_sleeps_until_the_next_end_and_not_for_the_whole_interval(rows, guest):
    await grant(rows, *guest, for_s=4)
    running = asyncio.create_task(new_sweep(rows).run())
    assert 3 < await rows.clock.wait_for_timer() <= 4
    running.cancel()


async def test_it_knows_the_next_end_also_when_what_others_forget_fails(rows, guest):
    async def prune():
        raise ValueError("broken")

    await grant(rows, *guest, for_s=4)
    running = asyncio.create_task(new_sweep(rows, prunes=[prune]).run())
    assert 3 < await rows.clock.wait_for_timer() <= 4
    running.cancel()


async def test_a_row_that_is_due_and_being_written_is_tried_again_soon(rows, guest):
    device, host = guest
    await grant(rows, device, host)
    session = await rows.session(device, host, ACTIVE)
    await rows.run("DELETE FROM host_grants")
    async with rows.uow() as unit:
        assert await unit.of(SessionStore).lock(session.id)
        running = asyncio.create_task(new_sweep(rows).run())
        assert await rows.clock.wait_for_timer() < 1
    rows.clock.advance(1)
    assert await rows.clock.wait_for_timer(within=LIMITS.interval) > 1
    running.cancel()
    assert (await rows.record(session.id)).close_reason == "revoked"


@pytest.mark.parametrize("wakes", [True, False])
async def test_a_right_that_changed_wakes_it_and_nothing_else_does(rows, guest, wakes):
    sweep = new_sweep(rows)
    running = asyncio.create_task(sweep.run())
    assert await rows.clock.wait_for_timer() == LIMITS.interval
    await grant(rows, *guest, for_s=3)
    kind = "rights.changed" if wakes else "host.updated"
    await sweep.on_events([LoggedEvent(1, Event(kind), rows.clock.now())])
    if wakes:
        assert await rows.clock.wait_for_timer(within=1) < 1, "a moment, in which other events join"
        rows.clock.advance(1)
        assert 1 < await rows.clock.wait_for_timer(within=3) <= 3
    else:
        await asyncio.sleep(0)
        assert await rows.clock.wait_for_timer() == LIMITS.interval
    running.cancel()


async def test_events_that_were_missed_wake_it(rows):
    sweep = new_sweep(rows)
    running = asyncio.create_task(sweep.run())
    assert await rows.clock.wait_for_timer() == LIMITS.interval
    await sweep.on_gap()
    assert await rows.clock.wait_for_timer(within=1) < 1
    running.cancel()


async def test_two_sweeps_at_once_end_each_session_once(rows, lab):
    sweeps = [new_sweep(rows), await settled(rows)]
    for each in sweeps:
        await each.once()
    rows.clock.advance(LIMITS.presence_window)
    sessions = [await aged(rows, lab, OPENING, "opened_at", 60) for _ in range(20)]
    for _ in range(3):
        await asyncio.gather(*(each.once() for each in sweeps))
    for session in sessions:
        assert await rows.audit(session_id=session.id) == [("terminal.terminate", "open_timeout")]
        assert await rows.events(session_id=session.id) == ["terminal_session.changed"]


async def test_one_round_at_a_time_and_the_other_does_not_wait(rows, lab):
    pruned = []

    async def prune():
        pruned.append(1)
        return 0

    sweep = await settled(rows, prunes=[prune])
    await aged(rows, lab, OPENING, "opened_at", 60)
    pruned.clear()
    async with rows.uow() as unit:
        assert await unit.of(SweepStore).begin()
        assert await asyncio.create_task(sweep.once()) == 0
        assert pruned == []
    assert await sweep.once() == 1
    assert pruned == [1]


async def test_a_row_that_somebody_writes_is_left_to_the_next_round(rows, lab):
    sweep = await settled(rows)
    session = await aged(rows, lab, OPENING, "opened_at", 60)
    async with rows.uow() as unit:
        assert await unit.of(SessionStore).lock(session.id)
        assert await asyncio.create_task(sweep.once()) == 0
    assert await sweep.once() == 1


async def test_many_are_ended_batch_by_batch_in_one_round(rows, lab):
    sweep = await settled(rows, limits=SweepLimits(10, 30, 3, OVERDUE))
    for _ in range(7):
        await aged(rows, lab, OPENING, "opened_at", 60)
    assert await sweep.once() == 7


async def test_it_runs_every_interval_whatever_one_round_meets(rows, lab, caplog):
    caplog.set_level(logging.INFO, "bothy_server.terminal.app.sweep")
    broken = []

    async def prune():
        return 1 // (not broken)

    sweep = await settled(rows, prunes=[prune])
    late = await aged(rows, lab, ACTIVE, "expires_at", 1)
    running = asyncio.create_task(sweep.run())
    for state in ("in order", "away", "broken", "in order again"):
        assert await rows.clock.wait_for_timer() == LIMITS.interval, state
        rows.away, broken[:] = state == "in order", [1] if state == "away" else []
        rows.clock.advance(LIMITS.interval)
    await rows.clock.wait_for_timer()
    running.cancel()
    assert caplog.messages == ["sweep ended sessions", "sweep skipped: the database does not answer", "sweep failed"]
    assert (await rows.record(late.id)).close_reason == "max_duration"


async def test_a_node_that_drains_sweeps_no_more(rows, lab):
    sweep = await settled(rows)
    sweep.halt()
    late = await aged(rows, lab, ACTIVE, "expires_at", 1)
    running = asyncio.create_task(sweep.run())
    for _ in range(2):
        assert await rows.clock.wait_for_timer() == LIMITS.interval
        rows.clock.advance(LIMITS.interval)
    await rows.clock.wait_for_timer()
    running.cancel()
    assert (await rows.record(late.id)).close_reason is None
    assert await sweep.once() == 1, "it was due"


def test_a_window_is_seen_without_a_gap():
    sight = Sight(30, 10)
    assert not sight.seen(100)
    assert not sight.seen(129.9)
    assert sight.seen(130)
    assert sight.seen(170)
    assert not sight.seen(210.1), "a pause that no interval explains is a gap"
    assert sight.seen(240.1)
    sight.lost()
    assert not sight.seen(241)
    assert sight.seen(271)


def test_a_sweep_that_looks_seldom_sees_it_too():
    sight = Sight(30, 600)
    assert not sight.seen(0)
    assert sight.seen(600)
