"""Owners and grants of a host in PostgreSQL, as those see them who decide about it."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.domain.rights import Grant, Owner
from bothy_wire.ids import HostId, PersonId

# FOR UPDATE, since a new session's foreign key waits for nothing less.
_HOLD = text("SELECT id FROM hosts WHERE id = :host_id FOR UPDATE")
_HAD_DEVICE = text("SELECT EXISTS (SELECT FROM devices WHERE person_id = :person_id)")
_OWNERS = text("""
    SELECT p.id, p.name, o.created_at, p.disabled_at IS NULL AS usable
    FROM host_owners o JOIN persons p ON p.id = o.person_id WHERE o.host_id = :host_id ORDER BY p.name
""")
_REMOVE_OWNER = text("DELETE FROM host_owners WHERE person_id = :person_id AND host_id = :host_id")
_GRANTS = text("""
    SELECT p.id, p.name, g."session_user" AS as_user, g.created_at, g.expires_at
    FROM host_grants g JOIN persons p ON p.id = g.person_id
    WHERE g.host_id = :host_id AND g."right" = 'terminal' AND (g.expires_at IS NULL OR g.expires_at > now())
    ORDER BY p.name, as_user
""")
_REMOVE_GRANTS = text("""
    DELETE FROM host_grants
    WHERE person_id = :person_id AND host_id = :host_id
      AND (CAST(:session_user AS text) IS NULL OR "session_user" = :session_user)
""")
_PRUNE = text("DELETE FROM host_grants WHERE expires_at <= now()")


class PostgresGrantStore:
    """Implements the port ``GrantStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def hold(self, host_id: HostId) -> bool:
        """See the port."""
        return (await self._connection.execute(_HOLD, {"host_id": host_id})).first() is not None

    async def had_device(self, person_id: PersonId) -> bool:
        """See the port."""
        return bool((await self._connection.execute(_HAD_DEVICE, {"person_id": person_id})).scalar_one())

    async def owners(self, host_id: HostId) -> list[Owner]:
        """See the port."""
        rows = await self._connection.execute(_OWNERS, {"host_id": host_id})
        return [Owner(PersonId(row.id), row.name, row.created_at, row.usable) for row in rows]

    async def remove_owner(self, person_id: PersonId, host_id: HostId) -> None:
        """See the port."""
        await self._connection.execute(_REMOVE_OWNER, {"person_id": person_id, "host_id": host_id})

    async def grants(self, host_id: HostId) -> list[Grant]:
        """See the port."""
        rows = await self._connection.execute(_GRANTS, {"host_id": host_id})
        return [Grant(PersonId(row.id), row.name, row.as_user, row.created_at, row.expires_at) for row in rows]

    async def remove_grants(self, person_id: PersonId, host_id: HostId, session_user: str | None) -> None:
        """See the port."""
        values = {"person_id": person_id, "host_id": host_id, "session_user": session_user}
        await self._connection.execute(_REMOVE_GRANTS, values)

    async def prune(self) -> int:
        """See the port."""
        return (await self._connection.execute(_PRUNE)).rowcount
