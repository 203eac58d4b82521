"""A drain is begun once, obeys the rule and tells how far it is."""

import asyncio

import pytest

from bothy_kit.manual_clock import ManualClock
from bothy_server.cluster.app.drain import Drain, Progress
from bothy_server.cluster.domain.drain import Left, Limits, Step

LIMITS = Limits(notice=2, spread=0, control_wait=5, batch=3, batch_gap=0.5, timeout=60)


class Parts:
    """Implements ``Leaving``: peers go when the test says so."""

    def __init__(self):
        self.did = []
        self.now = Left(1, 2)

    def turn_away(self):
        self.did.append("turn away")

    def close_listener(self):
        self.did.append("listener")

    def close_controls(self, count):
        self.did.append(("controls", count))

    def close_sides(self, pairs):
        self.did.append(("sides", pairs))

    def exit(self):
        self.did.append("exit")

    def left(self):
        return self.now


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def parts():
    return Parts()


@pytest.fixture
async def drain(clock, parts):
    drain = Drain(parts, clock, LIMITS)
    running = asyncio.create_task(drain.run())
    yield drain
    running.cancel()
    await asyncio.wait([running])


async def look(clock, seconds):
    await clock.wait_for_timer()
    clock.advance(seconds)
    for _ in range(3):
        await asyncio.sleep(0)


async def test_nothing_happens_before_it_is_asked(drain, parts):
    await asyncio.sleep(0)
    assert (parts.did, drain.begun) == ([], False)
    drain.begin()
    assert drain.begun


async def test_it_obeys_in_order_and_once(drain, clock, parts, caplog):
    caplog.set_level("INFO")
    told = []

    async def follow():
        told.extend([each async for each in drain.watch()])

    following = asyncio.create_task(follow())
    drain.begin()
    await look(clock, 2)
    assert parts.did == ["turn away", "listener", ("controls", 1)]
    parts.now = Left(0, 2)
    drain.begin()
    await look(clock, 0.5)
    assert parts.did[3:] == [("sides", 3)]
    parts.now = Left(0, 0)
    await look(clock, 0.5)
    await following
    assert parts.did[4:] == ["exit"]
    assert told == [
        Progress(Step.NOTICE, Left(1, 2)),
        Progress(Step.CONTROLS, Left(1, 2)),
        Progress(Step.SIDES, Left(0, 2)),
        Progress(Step.OVER, Left(0, 0)),
    ]
    logged = [(each.step, each.controls, each.sides) for each in caplog.records if each.message == "draining"]
    assert logged == [("notice", 1, 2), ("controls", 1, 2), ("sides", 0, 2), ("over", 0, 0)]


async def test_what_did_not_change_is_not_logged_again(drain, clock, parts, caplog):
    caplog.set_level("INFO")
    parts.now = Left(0, 2)
    drain.begin()
    await look(clock, 2)
    for _ in range(5):
        await look(clock, 0.5)
    assert parts.did == ["turn away", "listener", *[("sides", 3)] * 6]
    assert [each.step for each in caplog.records if each.message == "draining"] == ["notice", "sides"]


async def test_one_that_is_cut_short_leaves_nobody_waiting(clock, parts):
    drain = Drain(parts, clock, LIMITS)
    running = asyncio.create_task(drain.run())
    drain.begin()
    await clock.wait_for_timer()
    following = asyncio.create_task(anext(aiter_rest(drain), None))
    await asyncio.sleep(0)
    running.cancel()
    assert await following is None
    assert parts.did == ["turn away"]


async def aiter_rest(drain):
    """What is told after the first."""
    changes = drain.watch()
    await anext(changes)
    async for each in changes:
        yield each
