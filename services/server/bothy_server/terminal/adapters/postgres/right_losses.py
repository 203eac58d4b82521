"""Live sessions by what carries them, in PostgreSQL."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.terminal.adapters.postgres.sessions import COLUMNS, to_record
from bothy_server.terminal.app.ports import SessionRecord
from bothy_wire.ids import DeviceId, HostId, PersonId

_LIVE = f"SELECT {COLUMNS} FROM terminal_sessions s JOIN hosts h ON h.id = s.host_id WHERE s.state <> 'closed'"
# Held: an attach by another device that comes meanwhile either waits, or has taken the session from this one.
_OF_DEVICE = text(f"{_LIVE} AND s.device_id = :device_id ORDER BY s.id FOR NO KEY UPDATE OF s")
_OF_PERSON = text(f"""
    {_LIVE} AND s.person_id = :person_id AND (CAST(:host_id AS uuid) IS NULL OR s.host_id = :host_id)
    ORDER BY s.id FOR NO KEY UPDATE OF s
""")


class PostgresCarriedStore:
    """Implements the port ``CarriedStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def of_device(self, device_id: DeviceId) -> list[SessionRecord]:
        """See the port."""
        return [to_record(row) for row in await self._connection.execute(_OF_DEVICE, {"device_id": device_id})]

    async def of_person(self, person_id: PersonId, host_id: HostId | None = None) -> list[SessionRecord]:
        """See the port."""
        values = {"person_id": person_id, "host_id": host_id}
        return [to_record(row) for row in await self._connection.execute(_OF_PERSON, values)]
