"""Owners and grants in PostgreSQL."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.domain.rights import Right
from bothy_wire.ids import HostId, PersonId

_RIGHTS = text("""
    SELECT host_id, true AS owner, NULL AS as_user FROM host_owners
    WHERE person_id = :person_id AND (CAST(:host_id AS uuid) IS NULL OR host_id = :host_id)
    UNION ALL
    SELECT host_id, false, "session_user" FROM host_grants
    WHERE person_id = :person_id AND (CAST(:host_id AS uuid) IS NULL OR host_id = :host_id)
      AND "right" = 'terminal' AND (expires_at IS NULL OR expires_at > now())
""")
_ADD_OWNER = text(
    "INSERT INTO host_owners (person_id, host_id) VALUES (:person_id, :host_id) ON CONFLICT DO NOTHING RETURNING host_id"
)
_ADD_GRANT = text("""
    INSERT INTO host_grants (person_id, host_id, "right", "session_user", expires_at)
    SELECT :person_id, :host_id, 'terminal', :session_user, :expires_at
    WHERE coalesce(CAST(:expires_at AS timestamptz) > now(), true)
    ON CONFLICT (host_id, person_id, "right", "session_user") DO UPDATE SET expires_at = excluded.expires_at
    RETURNING host_id
""")


class PostgresRightStore:
    """Implements the port ``RightStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def right(self, person_id: PersonId, host_id: HostId) -> Right | None:
        """See the port."""
        return (await self._rights(person_id, host_id)).get(host_id)

    async def rights(self, person_id: PersonId) -> dict[HostId, Right]:
        """See the port."""
        return await self._rights(person_id, None)

    async def add_owner(self, person_id: PersonId, host_id: HostId) -> bool:
        """See the port."""
        added = await self._connection.execute(_ADD_OWNER, {"person_id": person_id, "host_id": host_id})
        return added.first() is not None

    async def add_grant(
        self, person_id: PersonId, host_id: HostId, session_user: str, expires_at: datetime | None
    ) -> bool:
        """See the port."""
        values = {"person_id": person_id, "host_id": host_id, "session_user": session_user, "expires_at": expires_at}
        return (await self._connection.execute(_ADD_GRANT, values)).first() is not None

    async def _rights(self, person_id: PersonId, host_id: HostId | None) -> dict[HostId, Right]:
        rights: dict[HostId, Right] = {}
        for row in await self._connection.execute(_RIGHTS, {"person_id": person_id, "host_id": host_id}):
            had = rights.get(row.host_id, Right(owner=False))
            users = had.session_users if row.as_user is None else had.session_users | {row.as_user}
            rights[HostId(row.host_id)] = Right(had.owner or row.owner, users)
        return rights
