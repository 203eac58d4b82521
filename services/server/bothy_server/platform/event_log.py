"""Following the event log, and pruning it (``docs/spec/data.md``, Event log).

Positions become visible in their order, since they are drawn under a lock that is held until the commit is visible
(``bothy_append``). So a reader that asks for "everything behind my position" skips nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, LiteralString

import psycopg
from psycopg.rows import dict_row
from sqlalchemy import text

from bothy_server.kernel.clock import Clock
from bothy_server.kernel.tail import LoggedEvent, TailSubscriber
from bothy_server.kernel.unit import Event, StorageUnavailable
from bothy_server.platform.database import Database, severed_after, storage_errors

APPLICATION = "bothy-event-tail"
Connection = psycopg.AsyncConnection[Any]

_log = logging.getLogger(__name__)

# The head stays when all rows are pruned: it is the floor then.
_EDGES = """
SELECT floor.position AS floor, greatest(floor.position, (SELECT max(position) FROM event_log)) AS head
FROM event_log_floor AS floor
"""
# One statement, so that edges and rows belong to one moment. Without newer rows it gives one row of edges alone.
_READ = f"""
SELECT edges.floor, edges.head, entry.*
FROM ({_EDGES}) AS edges
LEFT JOIN LATERAL (
    SELECT * FROM event_log WHERE position > %(position)s ORDER BY position LIMIT %(batch)s
) AS entry ON true
ORDER BY entry.position
"""  # noqa: S608 - no value in it

_RAISE_FLOOR = text("""
UPDATE event_log_floor SET position = greatest(position, coalesce(
    (SELECT position - 1 FROM event_log WHERE created_at >= now() - make_interval(secs => :retention_s)
     ORDER BY position LIMIT 1),
    (SELECT max(position) FROM event_log), 0))
""")
_PRUNE = text("""
DELETE FROM event_log WHERE position IN (
    SELECT event_log.position FROM event_log, event_log_floor AS floor
    WHERE event_log.position <= floor.position ORDER BY event_log.position LIMIT :batch)
""")


@dataclass(frozen=True, slots=True)
class TailLimits:
    """Seconds, and a number of events."""

    poll_interval: float
    reconnect_backoff_cap: float
    read_timeout: float
    batch: int


class EventLogTail:
    """The reader of one process. Implements :class:`bothy_server.kernel.tail.EventTail`; :meth:`run` is its task.

    It has an own connection that listens and reads, so that what wakes it and what it reads are one server, and never one
    in recovery. Every new connection is a gap, since the server may be another one.
    """

    def __init__(self, database: Database, clock: Clock, limits: TailLimits) -> None:
        """Nothing is dialled before :meth:`run`."""
        self._database = database
        self._clock = clock
        self._limits = limits
        self._subscribers: list[TailSubscriber] = []
        self._position = 0
        self._last_current_at: float | None = None
        self._losses = 0
        self._tried = asyncio.Event()

    def subscribe(self, subscriber: TailSubscriber) -> None:
        """See the port."""
        self._subscribers.append(subscriber)

    @property
    def last_current_at(self) -> float | None:
        """See the port."""
        return self._last_current_at

    @property
    def position(self) -> int:
        """The last event that was delivered."""
        return self._position

    async def settled(self) -> None:
        """Return when the log is being followed, or when the first try showed that the database is away."""
        await self._tried.wait()

    async def run(self) -> None:
        """Follow the log until cancelled; a database that is away is dialled again and again."""
        while True:
            try:
                await self._follow()
            except StorageUnavailable as error:
                if self._losses == 0:
                    _log.warning("event tail lost", extra={"error.type": type(error.__cause__ or error).__name__})
                self._losses += 1
            self._tried.set()
            await self._clock.sleep_until(self._clock.monotonic() + self._backoff())

    async def _follow(self) -> None:
        """One connection's life. LISTEN comes first: what commits after it wakes us, what committed before is read."""
        connection = await self._database.dial_listener(APPLICATION)
        try:
            await self._fetch(connection, "LISTEN event_log")
            await self._gap(connection)
            while True:
                while await self._read_on(connection):
                    pass
                self._settle()
                with storage_errors():
                    async for _ in connection.notifies(timeout=self._limits.poll_interval, stop_after=1):
                        pass
        finally:
            await connection.close()

    async def _read_on(self, connection: Connection) -> bool:
        """Deliver one batch; whether there may be more."""
        asked_at = self._clock.monotonic()
        rows = await self._fetch(connection, _READ, {"position": self._position, "batch": self._limits.batch})
        if not rows[0]["floor"] <= self._position <= rows[0]["head"]:
            await self._gap(connection)
            return True
        events = [_logged(row) for row in rows if row["position"] is not None]
        if events:
            for subscriber in self._subscribers:
                await subscriber.on_events(events)
            self._position = events[-1].position
        if len(events) == self._limits.batch:
            return True
        self._last_current_at = asked_at
        return False

    async def _gap(self, connection: Connection) -> None:
        """The head first, then the rows: what changes after the head is read comes as an event."""
        (edges,) = await self._fetch(connection, _EDGES)
        self._position = edges["head"]
        for subscriber in self._subscribers:
            await subscriber.on_gap()

    async def _fetch(
        self, connection: Connection, statement: LiteralString, values: Mapping[str, int] | None = None
    ) -> list[dict[str, Any]]:
        with storage_errors(), severed_after(connection, self._limits.read_timeout):
            async with connection.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(statement, values)
                return await cursor.fetchall() if cursor.description else []

    def _settle(self) -> None:
        if self._losses:
            _log.info("event tail restored")
        self._losses = 0
        self._tried.set()

    def _backoff(self) -> float:
        """At once after the first loss, then growing to the cap."""
        cap = self._limits.reconnect_backoff_cap
        return 0.0 if self._losses == 1 else min(cap, cap / 16 * 2 ** min(self._losses, 4))


async def prune(database: Database, retention: float, batch: int) -> int:
    """Remove events older than ``retention`` seconds, at most ``batch``; how many went.

    The floor is raised by a transaction of its own, so that no reader finds rows missing that it was not told of.
    """
    async with database.connect() as connection:
        await connection.execute(_RAISE_FLOOR, {"retention_s": retention})
        await connection.commit()
    async with database.connect() as connection:
        pruned = await connection.execute(_PRUNE, {"batch": batch})
        await connection.commit()
        return pruned.rowcount


def _logged(row: Mapping[str, Any]) -> LoggedEvent:
    event = Event(**{field.name: row[field.name] for field in fields(Event)})
    return LoggedEvent(row["position"], event, row["created_at"])
