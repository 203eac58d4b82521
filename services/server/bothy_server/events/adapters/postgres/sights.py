"""Who may see what, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.events.domain.sight import Sight
from bothy_wire.ids import DeviceId, PersonId

_SIGHTS = text("""
    SELECT d.id, d.person_id, p.is_operator,
      ARRAY(SELECT host_id FROM host_owners o WHERE o.person_id = d.person_id) AS owned,
      ARRAY(SELECT host_id FROM host_grants g WHERE g.person_id = d.person_id AND g."right" = 'terminal'
            AND (g.expires_at IS NULL OR g.expires_at > now())) AS granted
    FROM devices d JOIN persons p ON p.id = d.person_id
    WHERE d.id = ANY(:ids) AND d.revoked_at IS NULL AND p.disabled_at IS NULL
      AND (d.kind <> 'browser' OR d.login_until > now())
""")
_PERSONS = text("SELECT id, person_id FROM terminal_sessions WHERE id = ANY(:ids)")


class PostgresSightStore:
    """Implements the port ``SightStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def sights(self, devices: Collection[DeviceId]) -> dict[DeviceId, Sight]:
        """See the port."""
        rows = await self._connection.execute(_SIGHTS, {"ids": list(devices)})
        return {
            DeviceId(row.id): Sight(
                PersonId(row.person_id), row.is_operator, frozenset(row.owned), frozenset(row.granted)
            )
            for row in rows
        }

    async def persons(self, sessions: Collection[UUID]) -> dict[UUID, PersonId]:
        """See the port."""
        rows = await self._connection.execute(_PERSONS, {"ids": list(sessions)})
        return {row.id: PersonId(row.person_id) for row in rows}
