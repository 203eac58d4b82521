"""The unit of work on PostgreSQL (``docs/spec/data.md``, Unit of work; ports in ``kernel/unit.py``).

What a unit collects is written by one statement, ``bothy_append``, and COMMIT is the very next thing sent. So the lock of
the event log and the global lock that PostgreSQL takes for NOTIFY are held for one round trip.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.kernel.unit import AuditEntry, Event, Signal, SignalTransport
from bothy_server.platform.audit import check_audited
from bothy_server.platform.database import Database

S = TypeVar("S")

StoreFactories = Mapping[type, Callable[[AsyncConnection], object]]
"""For each store port, what makes its adapter on a connection."""

_log = logging.getLogger(__name__)
_APPEND = text("SELECT bothy_append(CAST(:audit AS jsonb), CAST(:events AS jsonb), CAST(:signals AS jsonb))")


class SqlUnitOfWork:
    """Opens units: ``async with uow() as unit``. Implements :class:`bothy_server.kernel.unit.UnitOfWork`."""

    def __init__(self, database: Database, stores: StoreFactories, signals: SignalTransport) -> None:
        """``stores`` is complete: a port that is not in it is a fault of the wiring."""
        self._database = database
        self._stores = stores
        self._signals = signals
        self._owners: set[asyncio.Task[Any] | None] = set()

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[SqlUnit]:
        """One transaction. A task that is in a unit opens no second one: it could wait for itself."""
        owner = asyncio.current_task()
        if owner in self._owners:
            raise RuntimeError("units of work do not nest; pass the open unit on")
        self._owners.add(owner)
        try:
            async with self._database.connect() as connection:
                unit = SqlUnit(connection, self._stores)
                yield unit
                await _to_the_end(self._finish(unit))
        finally:
            self._owners.discard(owner)

    async def _finish(self, unit: SqlUnit) -> None:
        signals = unit.signals
        if unit.entries or unit.events or signals:
            collected = {
                "audit": _json(unit.entries),
                "events": _json(unit.events),
                "signals": _json(self._signals.payloads(signals)),
            }
            await unit.connection.execute(_APPEND, collected)
        await unit.connection.commit()
        for entry in unit.entries:
            _log.debug("audited", extra={"bothy.audit.action": entry.action, "bothy.audit.code": entry.code})
        if signals:
            self._signals.committed(signals)


class SqlUnit:
    """One open transaction and what it collected. Implements :class:`bothy_server.kernel.unit.Unit`."""

    def __init__(self, connection: AsyncConnection, stores: StoreFactories) -> None:
        """``connection`` is this unit's alone."""
        self.connection = connection
        self.events: list[Event] = []
        self.entries: list[AuditEntry] = []
        self.signals: list[Signal] = []
        self._stores = stores

    def of(self, store: type[S]) -> S:
        """See the port."""
        return cast("S", self._stores[store](self.connection))

    def emit(self, event: Event) -> None:
        """See the port."""
        self.events.append(event)

    def audit(self, entry: AuditEntry) -> None:
        """See the port. Raises ``ValueError`` for an action or a code that is not in the list."""
        check_audited(entry.action, entry.code)
        self.entries.append(entry)

    def stage(self, signal: Signal) -> None:
        """See the port."""
        self.signals.append(signal)


def _json(items: Any) -> str:
    return msgspec.json.encode(items).decode()


async def _to_the_end(ending: Coroutine[Any, Any, None]) -> None:
    """Run what cannot be half done: a cancelled caller gets its cancellation after it.

    A COMMIT that is under way may or may not be carried out; only its answer tells whether signals are to be sent.
    """
    task = asyncio.ensure_future(ending)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                continue
        if not task.cancelled():
            task.exception()
        raise
