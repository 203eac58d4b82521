"""What a worker does every ``terminal.sweep_interval``: end what no node ended, forget what expired.

Ends that rows name by their instant, of a session or of a grant, are not left to the interval: the sweep sleeps until the
next of them at most, and an event ``rights.changed`` wakes it, since a new grant may end sooner than all others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bothy_server.kernel.clock import Clock
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import StorageUnavailable, UnitOfWork
from bothy_server.terminal.app.open_session import tell_ended
from bothy_server.terminal.app.ports import SessionRecord

_log = logging.getLogger(__name__)

_SHORTEST_SLEEP = 0.25
"""Seconds. No key: it is for a row that is due while somebody writes it, and keeps a storm of events from being one of rounds."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """Seconds after which a session has to end, counted from the column that its name suggests.

    ``idle`` counts from ``last_frame_at``, ``host_lost`` from the host's ``last_seen_at``; both are written now and then
    only, which is part of the value.
    """

    open_timeout: float
    start_timeout: float
    idle: float
    detach_grace: float
    host_lost: float


@dataclass(frozen=True, slots=True)
class SweepLimits:
    """``interval`` and ``presence_window`` in seconds; ``batch``: most sessions that one transaction ends."""

    interval: float
    presence_window: float
    batch: int
    overdue: Overdue


class SweepStore(Protocol):
    """What a round does to the rows, inside its transaction."""

    async def begin(self) -> bool:
        """Whether this is the only round under way on the database; until the unit ends nobody else's is. Never waits."""

    async def end_overdue(self, overdue: Overdue | None, batch: int) -> list[SessionRecord]:
        """End at most ``batch`` sessions that are past ``expires_at`` or, when given, ``overdue``. Never waits for a row.

        One that no right carries any more ends ``revoked``.
        """

    async def next_end(self) -> float | None:
        """Seconds until the next instant at which a session or a grant is over; not above 0 when a session is due now."""


class Sweep:
    """Safe to run anywhere and several times: one round at a time over the database, every end by compare-and-swap."""

    def __init__(
        self,
        uow: UnitOfWork,
        clock: Clock,
        limits: SweepLimits,
        prunes: Sequence[Callable[[], Awaitable[int]]],
    ) -> None:
        """``prunes``: what others forget, each in transactions of its own."""
        self._uow = uow
        self._clock = clock
        self._limits = limits
        self._prunes = prunes
        self._sight = Sight(limits.presence_window, limits.interval)
        self._halted = False
        self._woken = asyncio.Event()
        self._next_round = 0.0

    def halt(self) -> None:
        """No round begins any more: the node drains, and ends no row (N2)."""
        self._halted = True

    async def on_events(self, events: Sequence[LoggedEvent]) -> None:
        """See ``TailSubscriber``."""
        if any(each.event.type == "rights.changed" for each in events):
            self._woken.set()

    async def on_gap(self) -> None:
        """See ``TailSubscriber``."""
        self._woken.set()

    async def run(self) -> None:
        """Sweep until cancelled; a database that is away is tried again at the next round."""
        while True:
            self._woken.clear()
            begun = self._clock.monotonic()
            self._next_round = begun + self._limits.interval
            try:
                ended = 0 if self._halted else await self.once()
            except StorageUnavailable:
                _log.warning("sweep skipped: the database does not answer")
            except Exception:  # noqa: BLE001 - a defect in one round must not end the node that sweeps
                _log.exception("sweep failed")
            else:
                if ended:
                    _log.info("sweep ended sessions", extra={"bothy.sessions": ended})
            await self._sleep_since(begun)

    async def once(self) -> int:
        """One round; how many sessions it ended. Nothing when another process is in the middle of its own."""
        ended, alone = await self._end_all()
        await self._see_next_end()  # before what may take long, or fail
        for prune in self._prunes if alone else ():
            await prune()
        return ended

    async def _end_all(self) -> tuple[int, bool]:
        ended = 0
        while (found := await self._end_some()) is not None:
            ended += found
            if found < self._limits.batch:
                return ended, True
        return ended, False

    async def _see_next_end(self) -> None:
        async with self._uow() as unit:
            due = await unit.of(SweepStore).next_end()
        if due is not None:
            self._next_round = min(self._next_round, self._clock.monotonic() + due)

    async def _sleep_since(self, begun: float) -> None:
        """Until the next round, or until woken, and not too soon after the last one began."""
        earliest = begun + _SHORTEST_SLEEP
        timer = self._clock.call_at(max(self._next_round, earliest), self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
        await self._clock.sleep_until(earliest)

    async def _end_some(self) -> int | None:
        try:
            async with self._uow() as unit:
                store = unit.of(SweepStore)
                alone = await store.begin()
                overdue = self._limits.overdue if self._sight.seen(self._clock.monotonic()) else None
                ended = await store.end_overdue(overdue, self._limits.batch) if alone else []
                for record in ended:
                    tell_ended(unit, record)
        except StorageUnavailable:
            self._sight.lost()
            raise
        return len(ended) if alone else None


class Sight:
    """Whether the database has been seen long enough without a gap to believe what its rows do not say (N1).

    While it was away nodes could write nothing: hosts look unseen, sessions unpaired and unused.
    """

    def __init__(self, window: float, interval: float) -> None:
        """Seconds. Who looks every ``interval`` and did not for a ``window`` more, has not seen it meanwhile."""
        self._window = window
        self._longest_pause = interval + window
        self._since: float | None = None
        self._last = 0.0

    def seen(self, now: float) -> bool:
        """The database answered at steady instant ``now``; whether it has for a whole window, inclusive."""
        if self._since is None or now - self._last > self._longest_pause:
            self._since = now
        self._last = now
        return now - self._since >= self._window

    def lost(self) -> None:
        """It did not answer."""
        self._since = None
