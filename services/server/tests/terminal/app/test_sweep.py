"""What a worker ends when no node did, and what it leaves alone."""

import asyncio
import logging

import pytest

from bothy_server.terminal.app.sweep import Sweep, SweepLimits
from bothy_server.terminal.domain.session import SessionState

OPENING, ACTIVE, DETACHED, CLOSED = SessionState
LIMITS = SweepLimits(interval=10, open_timeout=20, start_timeout=30)
OPEN_BY_S, START_BY_S = 30, 40
"""A node ends it at the timeout; the sweep gives it one interval more."""


@pytest.fixture
def prunes():
    return []


@pytest.fixture
def new_sweep(rows, prunes):
    async def prune():
        prunes.append(rows.units)
        return 1

    return lambda: Sweep(rows.uow, rows.clock, LIMITS, [prune, prune])


@pytest.fixture
async def sweep(new_sweep):
    """Nothing of other tests is due any more."""
    sweep = new_sweep()
    await sweep.once()
    return sweep


async def age(rows, session, column, seconds):
    await rows.run(
        f"UPDATE terminal_sessions SET {column} = now() - make_interval(secs => :s) WHERE id = :id",
        s=seconds,
        id=session.id,
    )


@pytest.mark.parametrize(
    ("state", "paired", "column", "seconds", "reason", "detail"),
    [
        (OPENING, False, "opened_at", OPEN_BY_S + 1, "open_failed", "open_timeout"),
        (OPENING, True, "paired_at", START_BY_S + 1, "open_failed", "start_timeout"),
        (OPENING, False, "expires_at", 1, "max_duration", None),
        (ACTIVE, True, "expires_at", 1, "max_duration", None),
        (DETACHED, True, "expires_at", 1, "max_duration", None),
    ],
)
async def test_what_is_overdue_ends_once(sweep, rows, device, host, state, paired, column, seconds, reason, detail):
    session = await rows.session(device, host, state, paired=paired)
    await age(rows, session, column, seconds)
    assert await sweep.once() == 1
    assert await sweep.once() == 0
    record = await rows.record(session.id)
    assert (record.state, record.close_reason, record.close_detail) == (CLOSED, reason, detail)
    assert await rows.audit(session_id=session.id) == [("terminal.terminate", detail or reason)]
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    assert rows.signals.committed_ones == rows.signals.sent == [], "an end travels by the event log"


@pytest.mark.parametrize(
    ("state", "paired", "column", "seconds"),
    [
        (OPENING, False, "opened_at", OPEN_BY_S - 2),
        (OPENING, True, "opened_at", 10_000),
        (OPENING, True, "paired_at", START_BY_S - 2),
        (ACTIVE, True, "opened_at", 10_000),
        (ACTIVE, True, "paired_at", 10_000),
        (DETACHED, True, "paired_at", 10_000),
        (ACTIVE, True, "expires_at", -10),
        (CLOSED, False, "expires_at", 1),
    ],
)
async def test_what_is_in_time_is_left_alone(sweep, rows, device, host, state, paired, column, seconds):
    session = await rows.session(device, host, state, paired=paired)
    await age(rows, session, column, seconds)
    before = await rows.content()
    assert await sweep.once() == 0
    assert await rows.content() == before


async def test_where_a_person_is_asked_the_host_bounds_the_start(sweep, rows, device):
    session = await rows.session(device, await rows.host(device, local_confirm=True), paired=True)
    await age(rows, session, "paired_at", 10_000)
    assert await sweep.once() == 0


async def test_an_opening_that_is_doubly_overdue_ends_once(sweep, rows, device, host):
    session = await rows.session(device, host)
    for column in ("opened_at", "expires_at"):
        await age(rows, session, column, 10_000)
    assert await sweep.once() == 1
    assert (await rows.record(session.id)).close_reason == "open_failed"
    assert len(await rows.audit(session_id=session.id)) == 1


async def test_two_workers_at_once_end_it_once(sweep, new_sweep, rows, device, host):
    session = await rows.session(device, host, ACTIVE)
    await age(rows, session, "expires_at", 1)
    assert sorted(await asyncio.gather(sweep.once(), new_sweep().once())) == [0, 1]
    assert len(await rows.audit(session_id=session.id)) == 1


async def test_it_runs_every_interval_whatever_one_round_meets(sweep, rows, device, host, prunes, caplog, turns):
    caplog.set_level(logging.INFO, "bothy_server.terminal.app.sweep")
    prunes.clear()
    session = await rows.session(device, host, ACTIVE)
    await age(rows, session, "expires_at", 1)
    running = asyncio.create_task(sweep.run())
    await turns(lambda: len(prunes) == 2)
    rows.away = True
    assert await rows.clock.wait_for_timer() == LIMITS.interval
    rows.clock.advance(LIMITS.interval)
    await turns(lambda: "sweep skipped: the database does not answer" in caplog.messages)
    rows.away, sweep._prunes = False, [broken]
    await rows.clock.wait_for_timer()
    rows.clock.advance(LIMITS.interval)
    await turns(lambda: "sweep failed" in caplog.messages)
    await rows.clock.wait_for_timer()
    running.cancel()
    assert caplog.messages == [
        "sweep ended sessions",
        "sweep skipped: the database does not answer",
        "sweep failed",
    ]


async def broken():
    raise ZeroDivisionError("a defect of ours")
