"""A clock that stands still until a test moves it.

A test waits until the code under test has set its timer, then moves the clock::

    await clock.wait_for_timer()
    clock.advance(20)
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """Implements ``bothy_server.kernel.clock.Clock``. The steady clock starts at 0, cluster time at ``now``."""

    def __init__(self, now: datetime = START) -> None:
        self._start = now
        self._steady = 0.0
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._order = itertools.count()
        self._armed = asyncio.Event()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._steady)

    def monotonic(self) -> float:
        return self._steady

    def call_at(self, at: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(at, callback)
        if at <= self._steady:
            asyncio.get_running_loop().call_soon(timer.fire)
        else:
            heapq.heappush(self._timers, (at, next(self._order), timer))
            self._armed.set()
        return timer

    async def sleep_until(self, at: float) -> None:
        over = asyncio.Event()
        timer = self.call_at(at, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()

    def advance(self, seconds: float) -> None:
        """Move on, firing what becomes due in its order, each at its own instant. Tasks woken by it run afterwards."""
        until = self._steady + seconds
        while self._timers and self._timers[0][0] <= until:
            at, _, timer = heapq.heappop(self._timers)
            self._steady = at
            timer.fire()
        self._steady = until

    async def wait_for_timer(self, within: float | None = None) -> float:
        """Wait until a timer is set (when given, one due in at most ``within`` seconds); the seconds until the next one."""
        while (left := self._next()) is None or (within is not None and left > within):
            self._armed.clear()
            await self._armed.wait()
        return left

    def _next(self) -> float | None:
        while self._timers and self._timers[0][2].over:
            heapq.heappop(self._timers)
        return self._timers[0][0] - self._steady if self._timers else None


class ManualTimer:
    """One armed callback."""

    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.at = at
        self.over = False
        self._callback = callback

    def cancel(self) -> None:
        self.over = True

    def fire(self) -> None:
        if not self.over:
            self.over = True
            self._callback()
