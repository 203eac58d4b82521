"""Notices that the database is away, and that it is back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bothy_server.kernel.clock import Clock
from bothy_server.kernel.unit import StorageUnavailable, UnitOfWork
from bothy_server.terminal.app.ports import SessionStore


class StorageWatch:
    """Somebody who failed calls :meth:`lost`; from then on one task tries until the database answers."""

    def __init__(
        self,
        uow: UnitOfWork,
        clock: Clock,
        retry: float,
        changed: Callable[[bool], None],
        tasks: asyncio.TaskGroup,
    ) -> None:
        """``changed`` is told whether the database is away; ``retry`` in seconds between tries."""
        self.away = False
        self._uow = uow
        self._clock = clock
        self._retry = retry
        self._changed = changed
        self._tasks = tasks

    def lost(self) -> None:
        """A statement failed because the database did not answer."""
        if not self.away:
            self.away = True
            self._tasks.create_task(self._await_return())
            self._changed(True)

    async def _await_return(self) -> None:
        while self.away:
            await self._clock.sleep_until(self._clock.monotonic() + self._retry)
            try:
                async with self._uow() as unit:
                    await unit.of(SessionStore).rows(())
            except StorageUnavailable:
                continue
            self.away = False
            self._changed(False)
