"""A sleep of the host is noticed by two clocks of which only one went on."""

from __future__ import annotations

import asyncio
import time

import pytest

from bothy_host import clock


def test_the_clock_of_the_host_counts_the_time_asleep():
    assert clock.steady() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=1)


async def test_each_sleep_of_the_host_is_told_once(monkeypatch):
    monkeypatch.setattr(clock, "LOOK_EVERY", 0.001)
    asleep, woke, told = iter([5.0, 5.0, 6.9, 6.9, 3606.9, 3606.9, 9000.0, 9000.0]), asyncio.Event(), []

    def slept() -> float:
        if (seconds := next(asleep, None)) is None:
            woke.set()
            return 9000.0
        return seconds

    watch = asyncio.create_task(clock.watch_sleep(lambda: told.append("woke"), slept))
    async with asyncio.timeout(20):
        await woke.wait()
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    assert told == ["woke", "woke"]


def test_a_machine_that_is_awake_has_not_slept_between_two_looks():
    before = clock._slept()
    assert clock._slept() - before < clock.ASLEEP
