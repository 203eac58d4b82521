"""The event log in PostgreSQL, for readers who missed something; who follows it is ``platform/event_log.py``."""

from __future__ import annotations

from dataclasses import fields

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.events.app.ports import Edges
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import Event

# The head stays when all rows are pruned: it is the floor then.
_EDGES = text("""
    SELECT position AS floor, greatest(position, (SELECT max(position) FROM event_log)) AS head FROM event_log_floor
""")
_BEHIND = text("SELECT * FROM event_log WHERE position > :position ORDER BY position LIMIT :limit")


class PostgresLogStore:
    """Implements the port ``LogStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def edges(self) -> Edges:
        """See the port."""
        row = (await self._connection.execute(_EDGES)).one()
        return Edges(row.floor, row.head)

    async def behind(self, position: int, limit: int) -> list[LoggedEvent]:
        """See the port."""
        rows = await self._connection.execute(_BEHIND, {"position": position, "limit": limit})
        return [
            LoggedEvent(
                row.position, Event(**{each.name: getattr(row, each.name) for each in fields(Event)}), row.created_at
            )
            for row in rows
        ]
