"""Devices as their person manages them, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.app.devices import KnownDevice
from bothy_wire.ids import DeviceId, PersonId

_COLUMNS = "id, person_id, name, kind, added_by, channel_key, created_at, last_used_at, revoked_at"
_OF_PERSON = text(f"SELECT {_COLUMNS} FROM devices WHERE person_id = :person_id ORDER BY created_at, id")
_LOCK = text(f"SELECT {_COLUMNS} FROM devices WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE")
_REVOKE = text(f"UPDATE devices SET revoked_at = now() WHERE id = :id RETURNING {_COLUMNS}")
# Behind the lock of the device's row: an open or attach holds that first, and then spends its step-up.
_FORGET_OPEN = text("""
    WITH asked AS (DELETE FROM challenges WHERE device_id = :id),
         waiting AS (DELETE FROM device_logins WHERE device_id = :id)
    DELETE FROM step_ups WHERE device_id = :id
""")
_HOLD = text("""
    SELECT d.id FROM devices d JOIN persons p ON p.id = d.person_id
    WHERE d.id = :id AND d.revoked_at IS NULL AND p.disabled_at IS NULL FOR SHARE
""")
_FORGET_INVITES = text("DELETE FROM invites WHERE person_id = :person_id AND used_at IS NULL")


class PostgresDeviceStore:
    """Implements the ports ``DeviceStore`` and ``HoldStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def of_person(self, person_id: PersonId) -> list[KnownDevice]:
        """See the port."""
        return [_device(row) for row in await self._connection.execute(_OF_PERSON, {"person_id": person_id})]

    async def lock(self, device_ids: Collection[DeviceId]) -> dict[DeviceId, KnownDevice]:
        """See the port."""
        rows = await self._connection.execute(_LOCK, {"ids": list(device_ids)})
        return {DeviceId(row.id): _device(row) for row in rows}

    async def revoke(self, device_id: DeviceId) -> KnownDevice:
        """See the port."""
        row = (await self._connection.execute(_REVOKE, {"id": device_id})).one()
        await self._connection.execute(_FORGET_OPEN, {"id": device_id})
        return _device(row)

    async def hold(self, device_id: DeviceId) -> bool:
        """See the port."""
        return (await self._connection.execute(_HOLD, {"id": device_id})).first() is not None

    async def forget_invites(self, person_id: PersonId) -> None:
        """See the port."""
        await self._connection.execute(_FORGET_INVITES, {"person_id": person_id})


def _device(row: Row[Any]) -> KnownDevice:
    return KnownDevice(
        id=DeviceId(row.id),
        person_id=PersonId(row.person_id),
        name=row.name,
        kind=row.kind,
        added_by=row.added_by,
        channel_key=bytes(row.channel_key),
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )
