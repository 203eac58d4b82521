"""What waits for one handler: a bounded number of signals, and whether some were missed.

The listener only puts; a slow or failing handler costs nobody else anything. Too many waiting, a handler that failed and a
listener that was away are one and the same: a gap, closed by reading the rows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass

from bothy_server.cluster.app.ports import SignalHandler
from bothy_server.kernel.clock import Clock, Timer
from bothy_server.kernel.unit import Signal, StorageUnavailable

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InboxLimits:
    """``waiting``: signals for one handler; ``gap_retry``: seconds after a failed reconcile."""

    waiting: int
    gap_retry: float


class Inbox:
    """Feeds one handler. ``overflows`` and ``failures`` only grow."""

    def __init__(self, handler: SignalHandler, clock: Clock, limits: InboxLimits) -> None:
        self.overflows = 0
        self.failures = 0
        self._handler = handler
        self._clock = clock
        self._limits = limits
        self._signals: list[Signal] = []
        self._gaps: list[asyncio.Event] = []
        self._retry: Timer | None = None
        self._wake = asyncio.Event()

    def put(self, signal: Signal) -> None:
        """Queue a signal. One too many is dropped and leaves a gap."""
        if len(self._signals) < self._limits.waiting:
            self._signals.append(signal)
            self._wake.set()
            return
        self.overflows += 1
        if not self._gaps:
            self.gap()

    def gap(self) -> asyncio.Event:
        """Ask for a reconcile; the event is set when one that began after this call has succeeded."""
        closed = asyncio.Event()
        self._gaps.append(closed)
        self._wake.set()
        return closed

    async def run(self) -> None:
        """Feed the handler until cancelled."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._hand_over()
                await self._reconcile()
        finally:
            if self._retry is not None:
                self._retry.cancel()

    async def _hand_over(self) -> None:
        signals, self._signals = self._signals, []
        if signals and not await self._contained(self._handler.handle(signals)) and not self._gaps:
            self.gap()

    async def _reconcile(self) -> None:
        if not self._gaps or self._retry is not None:
            return
        gaps, self._gaps = self._gaps, []
        if await self._contained(self._handler.on_gap()):
            for closed in gaps:
                closed.set()
        else:
            self._gaps[:0] = gaps
            self._retry = self._clock.call_at(self._clock.monotonic() + self._limits.gap_retry, self._again)

    def _again(self) -> None:
        self._retry = None
        self._wake.set()

    async def _contained(self, work: Awaitable[None]) -> bool:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - one feature's fault must not deafen the others
            self.failures += 1
            _log.warning(
                "terminal signal handler failed",
                extra={"error.type": type(error).__name__},
                exc_info=not isinstance(error, StorageUnavailable),
            )
            return False
        return True
