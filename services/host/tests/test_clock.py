"""A sleep of the machine is noticed by two clocks of which only one went on."""

import asyncio
import time

import pytest

from bothy_host import clock


def test_the_clock_counts_the_time_asleep():
    assert clock.steady() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=1)


async def test_a_sleep_is_told_once(monkeypatch):
    monkeypatch.setattr(clock, "LOOK_EVERY", 0.001)
    asleep, looks, woke = iter([5.0, 5.0, 6.9, 6.9, 3606.9, 3606.9, 3606.9]), 0, []

    def slept():
        nonlocal looks
        looks += 1
        if (seconds := next(asleep, None)) is None:
            raise EOFError
        return seconds

    async with asyncio.timeout(20):
        with pytest.raises(EOFError):
            await clock.watch_sleep(lambda: woke.append(looks), slept)
    assert woke == [5]


async def test_a_machine_that_does_not_sleep_wakes_nobody(monkeypatch):
    monkeypatch.setattr(clock, "LOOK_EVERY", 0.001)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await clock.watch_sleep(lambda: pytest.fail("woke"))
