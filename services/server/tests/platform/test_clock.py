"""What every clock promises, kept by the real one and by the one that tests move; and cluster time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, timedelta

import pytest

from bothy_kit.manual_clock import ManualClock
from bothy_server.kernel.clock import Clock
from bothy_server.platform import clock as clock_module
from bothy_server.platform.clock import ClusterClock

Pass = Callable[[float], Awaitable[None]]
STEP = 0.02


@pytest.fixture(params=["real", "manual"])
def clock_and_pass(request) -> tuple[Clock, Pass]:
    """A clock, and how its time goes by."""
    if request.param == "real":
        return ClusterClock(), asyncio.sleep
    manual = ManualClock()

    async def advance(seconds: float) -> None:
        manual.advance(seconds)
        await asyncio.sleep(0)

    return manual, advance


class TestEveryClock:
    async def test_cluster_time_is_utc_and_goes_with_the_steady_clock(self, clock_and_pass):
        clock, pass_time = clock_and_pass
        at, steady = clock.now(), clock.monotonic()
        await pass_time(STEP)
        assert at.tzinfo is UTC
        gone = clock.monotonic() - steady
        assert gone >= STEP * 0.9
        assert clock.now() - at == pytest.approx(timedelta(seconds=gone), abs=timedelta(milliseconds=5))

    async def test_callbacks_come_in_the_order_of_their_instants_and_not_before(self, clock_and_pass):
        clock, pass_time = clock_and_pass
        start, came = clock.monotonic(), []
        for at in (3, 1, 2):
            clock.call_at(start + at * STEP, lambda at=at: came.append((at, clock.monotonic() - start)))
        assert came == []
        await pass_time(STEP * 4)
        assert [at for at, _ in came] == [1, 2, 3]
        assert all(when >= at * STEP - 1e-9 for at, when in came)

    async def test_an_instant_that_has_passed_is_called_soon_and_never_at_once(self, clock_and_pass):
        clock, pass_time = clock_and_pass
        came = []
        clock.call_at(clock.monotonic() - 1, lambda: came.append(1))
        assert came == []
        await pass_time(STEP)
        assert came == [1]

    async def test_a_cancelled_timer_stays_silent_however_often_it_is_cancelled(self, clock_and_pass):
        clock, pass_time = clock_and_pass
        came = []
        for delay in (0, STEP):
            timer = clock.call_at(clock.monotonic() + delay, lambda: came.append(1))
            timer.cancel()
            timer.cancel()
        await pass_time(STEP * 2)
        assert came == []

    async def test_cancelling_after_it_fired_does_nothing(self, clock_and_pass):
        clock, pass_time = clock_and_pass
        came = []
        timer = clock.call_at(clock.monotonic() + STEP, lambda: came.append(1))
        await pass_time(STEP * 2)
        timer.cancel()
        assert came == [1]

    async def test_a_callback_may_set_the_next_timer(self, clock_and_pass):
        clock, pass_time = clock_and_pass
        came = []

        def again() -> None:
            came.append(1)
            if len(came) < 3:
                clock.call_at(clock.monotonic() + STEP, again)

        clock.call_at(clock.monotonic() + STEP, again)
        for _ in range(3):
            await pass_time(STEP * 2)
        assert came == [1, 1, 1]

    async def test_sleeping_ends_at_its_instant(self, clock_and_pass):
        clock, pass_time = clock_and_pass
        until = clock.monotonic() + STEP
        sleeper = asyncio.create_task(clock.sleep_until(until))
        await asyncio.sleep(0)
        assert not sleeper.done()
        await pass_time(STEP * 2)
        await sleeper
        assert clock.monotonic() >= until

    async def test_a_cancelled_sleep_leaves_no_timer(self, clock_and_pass):
        clock, pass_time = clock_and_pass
        sleeper = asyncio.create_task(clock.sleep_until(clock.monotonic() + STEP))
        await asyncio.sleep(0)
        sleeper.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeper
        await pass_time(STEP * 2)


async def test_the_steady_clock_counts_suspend():
    assert ClusterClock().monotonic() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=1)


async def test_a_long_timer_looks_at_the_clock_again_after_each_hop(monkeypatch):
    """The loop's timers stand still while the machine sleeps; the clock does not."""
    monkeypatch.setattr(clock_module, "_HOP_S", 0.005)
    clock, came = ClusterClock(), asyncio.Event()
    slept = 0.0
    monkeypatch.setattr(clock, "monotonic", lambda: time.clock_gettime(time.CLOCK_BOOTTIME) + slept)
    clock.call_at(clock.monotonic() + 3600, came.set)
    slept = 3600
    async with asyncio.timeout(5):
        await came.wait()


async def test_cluster_time_is_the_databases_whatever_the_own_clock_says(database, monkeypatch):
    monkeypatch.setattr(clock_module.time, "time", lambda wall=time.time: wall() + 300)
    clock = ClusterClock()
    assert clock.skew is None
    assert clock.now().timestamp() == pytest.approx(clock_module.time.time(), abs=1)

    await clock.synchronize(database)

    assert clock.skew == pytest.approx(300, abs=1)
    assert clock.now().timestamp() == pytest.approx(clock_module.time.time() - 300, abs=1)


class TestManualClock:
    async def test_waiting_for_a_timer_gives_the_seconds_until_it(self):
        clock = ManualClock()
        waiter = asyncio.create_task(clock.wait_for_timer())
        await asyncio.sleep(0)
        assert not waiter.done()
        clock.call_at(7, lambda: None)
        assert await waiter == 7

    async def test_a_cancelled_timer_is_not_waited_for(self):
        clock = ManualClock()
        clock.call_at(3, lambda: None).cancel()
        clock.call_at(9, lambda: None)
        assert await clock.wait_for_timer() == 9

    async def test_waiting_for_a_near_one_passes_over_those_far_away(self):
        clock = ManualClock()
        clock.call_at(3600, lambda: None)
        waiter = asyncio.create_task(clock.wait_for_timer(within=10))
        await asyncio.sleep(0)
        assert not waiter.done()
        clock.call_at(5, lambda: None)
        assert await waiter == 5
