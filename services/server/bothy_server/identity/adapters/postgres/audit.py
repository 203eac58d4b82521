"""Reading the audit in PostgreSQL. Writing it is the unit of work's (``platform/unit_of_work.py``)."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.app.audit import AuditFilter, AuditRecord
from bothy_wire.ids import PersonId

_HEAD = text("SELECT coalesce(max(position), 0) FROM audit_log")
_ENTRIES = text("""
    SELECT position, at, action, code, person_id, device_id, host_id, session_id, subject_person_id, subject_device_id
    FROM audit_log
    WHERE position >= :first AND position < :before
      AND (CAST(:action AS text) IS NULL OR action = :action)
      AND (CAST(:person_id AS uuid) IS NULL OR :person_id IN (person_id, subject_person_id))
      AND (CAST(:device_id AS uuid) IS NULL OR :device_id IN (device_id, subject_device_id))
      AND (CAST(:host_id AS uuid) IS NULL OR host_id = :host_id)
      AND (CAST(:session_id AS uuid) IS NULL OR session_id = :session_id)
      AND (CAST(:since AS timestamptz) IS NULL OR at >= :since)
      AND (CAST(:until AS timestamptz) IS NULL OR at < :until)
      AND (CAST(:of AS uuid) IS NULL OR :of IN (person_id, subject_person_id)
           OR subject_device_id IN (SELECT id FROM devices WHERE devices.person_id = :of))
    ORDER BY position DESC LIMIT :limit
""")


class PostgresAuditStore:
    """Implements the port ``AuditStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def head(self) -> int:
        """See the port."""
        found: int = (await self._connection.execute(_HEAD)).scalar_one()
        return found

    async def entries(
        self, asked: AuditFilter, of: PersonId | None, first: int, before: int, limit: int
    ) -> list[AuditRecord]:
        """See the port."""
        values = {**asdict(asked), "of": of, "first": first, "before": before, "limit": limit}
        found = await self._connection.execute(_ENTRIES, values)
        return [AuditRecord(**row) for row in found.mappings()]
