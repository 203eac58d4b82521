"""What a worker does every ``terminal.sweep_interval``: end what no node ended, forget what expired."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bothy_server.kernel.clock import Clock
from bothy_server.kernel.unit import StorageUnavailable, UnitOfWork
from bothy_server.terminal.app.open_session import tell_ended
from bothy_server.terminal.app.ports import SessionStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SweepLimits:
    """Seconds (keys ``terminal.sweep_interval``, ``terminal.open_timeout``, ``terminal.start_timeout``)."""

    interval: float
    open_timeout: float
    start_timeout: float


class Sweep:
    """Ends stuck openings and sessions past ``expires_at``. Safe to run anywhere: every end is compare-and-swap."""

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

    async def run(self) -> None:
        """Sweep until cancelled; a database that is away is tried again at the next round."""
        while True:
            try:
                ended = await self.once()
            except StorageUnavailable:
                _log.warning("sweep skipped: the database does not answer")
            except Exception:  # noqa: BLE001 - a defect in one round must not end the node that sweeps
                _log.exception("sweep failed")
            else:
                if ended:
                    _log.info("sweep ended sessions", extra={"bothy.sessions": ended})
            await self._clock.sleep_until(self._clock.monotonic() + self._limits.interval)

    async def once(self) -> int:
        """One round; how many sessions it ended. An interval is left to the nodes, which end openings themselves."""
        margin = self._limits.interval
        async with self._uow() as unit:
            store = unit.of(SessionStore)
            found = await store.overdue(self._limits.open_timeout + margin, self._limits.start_timeout + margin)
            ended = 0
            for each in found:
                never_paired = each.detail == "open_timeout"
                opening = each.reason == "open_failed"
                for record in await store.close(
                    [each.id], each.reason, each.detail, never_paired=never_paired, opening=opening
                ):
                    tell_ended(unit, record)
                    ended += 1
        for prune in self._prunes:
            await prune()
        return ended
