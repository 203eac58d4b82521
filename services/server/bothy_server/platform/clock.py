"""Cluster time on a node, and timers that count the time a machine slept (``docs/spec/cluster.md``, C)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import text

from bothy_server.platform.database import Database

_HOP_S = 10.0
"""The loop's own timers stand still while the machine sleeps, so a long one is set in hops and looks at the clock again.
This is how late a timer may be after a sleep; not a limit that anyone would choose."""

_READ = text("SELECT clock_timestamp()")


class ClusterClock:
    """Implements :class:`bothy_server.kernel.clock.Clock`. Until the first :meth:`synchronize` it takes the node's own time."""

    def __init__(self) -> None:
        """The offset is cluster time minus the steady clock, in seconds."""
        self._offset = time.time() - self.monotonic()
        self._skew: float | None = None

    async def synchronize(self, database: Database) -> None:
        """Read the database's clock. Raises ``StorageUnavailable``; the last offset holds then.

        The answer is taken to be from the middle of the round trip, so the error is at most half of it.
        """
        async with database.connect() as connection:
            await connection.execute(text("SELECT 1"))  # the dial and BEGIN are not part of the round trip
            asked_at = self.monotonic()
            there = (await connection.execute(_READ)).scalar_one().timestamp()
            answered_at = self.monotonic()
        self._offset = there - (asked_at + answered_at) / 2
        self._skew = time.time() - (answered_at + self._offset)

    @property
    def skew(self) -> float | None:
        """Seconds by which the node's own clock was ahead at the last reading; None before the first."""
        return self._skew

    def now(self) -> datetime:
        """See the port."""
        return datetime.fromtimestamp(self.monotonic() + self._offset, UTC)

    def monotonic(self) -> float:
        """See the port."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def call_at(self, at: float, callback: Callable[[], None]) -> HoppingTimer:
        """See the port."""
        return HoppingTimer(self, at, callback)

    async def sleep_until(self, at: float) -> None:
        """See the port."""
        over = asyncio.Event()
        timer = self.call_at(at, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()


class HoppingTimer:
    """One armed callback. Implements :class:`bothy_server.kernel.clock.Timer`."""

    def __init__(self, clock: ClusterClock, at: float, callback: Callable[[], None]) -> None:
        """Needs the running loop."""
        self._clock = clock
        self._at = at
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._handle = self._hop()

    def cancel(self) -> None:
        """See the port."""
        self._handle.cancel()

    def _hop(self) -> asyncio.TimerHandle:
        left = self._at - self._clock.monotonic()
        return self._loop.call_later(min(max(left, 0), _HOP_S), self._due)

    def _due(self) -> None:
        if self._clock.monotonic() < self._at:
            self._handle = self._hop()
        else:
            self._callback()
