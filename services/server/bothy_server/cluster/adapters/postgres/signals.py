"""Several nodes: signals over ``NOTIFY ephemeral``. The sender hears itself through its own listener, like all others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy import text

from bothy_server.cluster.domain.signal import SignalTable
from bothy_server.kernel.unit import Signal, StorageUnavailable
from bothy_server.platform.database import Database

CHANNEL = "ephemeral"

_NOTIFY = text(f"SELECT pg_notify('{CHANNEL}', payload) FROM unnest(CAST(:payloads AS text[])) AS payload")
_log = logging.getLogger(__name__)

Notify = Callable[[Sequence[str]], Awaitable[None]]
"""Commits a notification per payload; raises :class:`StorageUnavailable`."""


def notifier(database: Database) -> Notify:
    """Notify through the pool: one statement that is its own transaction, however many payloads."""

    async def once(payloads: Sequence[str]) -> None:
        async with database.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(_NOTIFY, {"payloads": list(payloads)})

    async def notify(payloads: Sequence[str]) -> None:
        try:
            await once(payloads)
        except StorageUnavailable:  # maybe only a pooled connection from before a restart; the pool is renewed by now
            await once(payloads)

    return notify


def error_type(error: Exception) -> str:
    """What ``error.type`` says of an error: the driver's name for it when there is one."""
    return type(error.__cause__ or error).__name__


class NotifySignals:
    """``cluster.mode`` = ``multi``. ``dropped`` counts what was sent and never notified: hints that heal by themselves."""

    def __init__(self, table: SignalTable, notify: Notify, *, max_waiting: int) -> None:
        self.dropped = 0
        self._table = table
        self._notify = notify
        self._max_waiting = max_waiting
        self._waiting: list[str] = []
        self._wake = asyncio.Event()

    def payloads(self, signals: Sequence[Signal]) -> list[str]:
        """What the unit of work notifies as part of its last statement."""
        return [self._table.encode(signal) for signal in signals]

    def committed(self, signals: Sequence[Signal]) -> None:
        """Nothing: PostgreSQL delivers at the commit, to this node too."""

    def send(self, signal: Signal) -> None:
        """Queue for the next statement. What finds the queue full is dropped."""
        if len(self._waiting) == self._max_waiting:
            self.dropped += 1
            return
        self._waiting.append(self._table.encode(signal))
        self._wake.set()

    async def run(self) -> None:
        """Notify what was sent, one statement at a time, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            payloads, self._waiting = self._waiting, []
            try:
                await self._notify(payloads)
            except StorageUnavailable as error:
                self.dropped += len(payloads)  # too old to matter once the database is back
                _log.warning("terminal signals not sent", extra={"error.type": error_type(error)})
