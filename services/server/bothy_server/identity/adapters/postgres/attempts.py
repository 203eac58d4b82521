"""Failed attempts in PostgreSQL, by its own clock."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

# The empty update takes the row's lock; clock_timestamp(), since the wait for it may have been long.
_LOCK = text("""
    INSERT INTO attempts AS known (kind, subject, whole_at) VALUES (:kind, :subject, clock_timestamp())
    ON CONFLICT (kind, subject) DO UPDATE SET whole_at = known.whole_at
    RETURNING whole_at, clock_timestamp() AS present
""")
_WRITE = text("UPDATE attempts SET whole_at = :whole_at WHERE kind = :kind AND subject = :subject")
_PRUNE = text("DELETE FROM attempts WHERE whole_at < now()")


class PostgresAttemptStore:
    """Implements the port ``AttemptStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def lock(self, kind: str, subject: bytes) -> tuple[datetime, datetime]:
        """See the port."""
        row = (await self._connection.execute(_LOCK, {"kind": kind, "subject": subject})).one()
        return row.whole_at, row.present

    async def write(self, kind: str, subject: bytes, whole_at: datetime) -> None:
        """See the port."""
        await self._connection.execute(_WRITE, {"kind": kind, "subject": subject, "whole_at": whole_at})

    async def prune(self) -> int:
        """See the port."""
        return (await self._connection.execute(_PRUNE)).rowcount
