"""Time on the host: steady seconds that count suspend, and cluster time (``docs/spec/cluster.md``, C)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LOOK_EVERY = 2.0
"""Seconds between two looks at the clocks. No key: a look costs nothing, and nobody waits for a wake-up sooner."""
ASLEEP = 2.0
"""Seconds asleep that count. No key: what a connection outlives is far below its ping timeout and far above a clock's error."""


def steady() -> float:
    """Seconds since boot, the time asleep included, so that a connection that died during a suspend is seen as old."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


async def watch_sleep(woke: Callable[[], None], slept: Callable[[], float] | None = None) -> None:
    """Call ``woke`` after each sleep of this machine. ``slept`` tells the seconds asleep since boot.

    The device has its own: both share the wire only, which knows no clock.
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


class ClusterClock:
    """The server's time, carried on by this machine's steady clock. Its own wall clock is never used."""

    def __init__(self) -> None:
        self._offset = time.time() - steady()

    def set(self, server_time: float) -> None:
        """Take over a time that the server just sent."""
        self._offset = server_time - steady()

    def now(self) -> float:
        """Seconds since the epoch of cluster time; before the server has spoken, this machine's guess."""
        return steady() + self._offset
