"""The clock of a session, and whether this machine slept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LOOK_EVERY = 2.0
"""Seconds between two looks at the clocks. No key: a look costs nothing, and a person has just opened the lid."""
ASLEEP = 2.0
"""Seconds asleep that count. No key: what a connection outlives is far below its ping timeout and far above a clock's error."""


def steady() -> float:
    """Seconds since boot, the time asleep included; nobody can set it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


async def watch_sleep(woke: Callable[[], None], slept: Callable[[], float] | None = None) -> None:
    """Call ``woke`` after each sleep. ``slept`` tells the seconds asleep since boot.

    The host has its own: both share the wire only, which knows no clock.
    """
    slept = slept or _slept
    before = slept()
    while True:
        await asyncio.sleep(LOOK_EVERY)
        if (now := slept()) - before >= ASLEEP:
            woke()
        before = now


def _slept() -> float:
    """The monotonic clock stands still meanwhile, and so do the timers of the event loop."""
    return steady() - time.monotonic()
