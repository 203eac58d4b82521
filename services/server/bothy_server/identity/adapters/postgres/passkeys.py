"""Passkeys in PostgreSQL."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.app.passkey_proof import KnownPasskey, Passkey, Registered
from bothy_wire.ids import DeviceId, PersonId

_ADD = text("""
    INSERT INTO passkeys (id, person_id, device_id, name, credential_id, public_key, sign_count, backed_up)
    VALUES (:id, :person_id, :device_id, :name, :credential_id, :public_key, :sign_count, :backed_up)
    ON CONFLICT DO NOTHING RETURNING id
""")
_SEEN = "SELECT id, name, credential_id, backed_up, created_at, last_used_at FROM passkeys"
_OF_PERSON = text(f"{_SEEN} WHERE person_id = :person_id AND removed_at IS NULL ORDER BY created_at, id")
_GET = text(f"{_SEEN} WHERE id = :id")
_FIND = text("""
    SELECT k.id, k.person_id, p.name AS person_name, k.public_key
    FROM passkeys k JOIN persons p ON p.id = k.person_id
    WHERE k.credential_id = :credential_id AND k.removed_at IS NULL AND p.disabled_at IS NULL
    FOR NO KEY UPDATE OF k
""")
# An authenticator that does not count says 0 for ever.
_NOTE_USE = text("""
    UPDATE passkeys SET sign_count = :sign_count, backed_up = :backed_up, last_used_at = now()
    WHERE id = :id AND (sign_count < :sign_count OR (sign_count = 0 AND :sign_count = 0))
    RETURNING id
""")
_REMOVE = text("""
    UPDATE passkeys SET removed_at = now() WHERE id = :id AND person_id = :person_id AND removed_at IS NULL RETURNING id
""")
_REMOVE_ADDED_WITH = text("""
    UPDATE passkeys SET removed_at = now() WHERE device_id = :device_id AND removed_at IS NULL RETURNING id
""")
_CAME_TO_ADD = text("""
    SELECT FROM devices d
    WHERE d.id = :device_id AND d.kind = 'browser' AND d.added_by = 'invite'
      AND d.created_at > now() - make_interval(secs => :window_s)
      AND NOT EXISTS (SELECT FROM passkeys WHERE device_id = d.id)
""")


class PostgresPasskeyStore:
    """Implements the port ``PasskeyStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def add(
        self,
        passkey_id: UUID,
        person_id: PersonId,
        device_id: DeviceId,
        name: str,
        credential_id: bytes,
        new: Registered,
    ) -> bool:
        """See the port."""
        whose = {"id": passkey_id, "person_id": person_id, "device_id": device_id, "name": name}
        proof = {"credential_id": credential_id, "public_key": new.public_key}
        state = {"sign_count": new.sign_count, "backed_up": new.backed_up}
        return (await self._connection.execute(_ADD, {**whose, **proof, **state})).first() is not None

    async def of_person(self, person_id: PersonId) -> list[Passkey]:
        """See the port."""
        return [_passkey(row) for row in await self._connection.execute(_OF_PERSON, {"person_id": person_id})]

    async def get(self, passkey_id: UUID) -> Passkey:
        """See the port."""
        return _passkey((await self._connection.execute(_GET, {"id": passkey_id})).one())

    async def hold(self, credential_id: bytes) -> KnownPasskey | None:
        """See the port."""
        row = (await self._connection.execute(_FIND, {"credential_id": credential_id})).first()
        if row is None:
            return None
        return KnownPasskey(row.id, PersonId(row.person_id), row.person_name, bytes(row.public_key))

    async def note_use(self, passkey_id: UUID, sign_count: int, *, backed_up: bool) -> bool:
        """See the port."""
        values = {"id": passkey_id, "sign_count": sign_count, "backed_up": backed_up}
        return (await self._connection.execute(_NOTE_USE, values)).first() is not None

    async def remove(self, passkey_id: UUID, person_id: PersonId) -> bool:
        """See the port."""
        row = await self._connection.execute(_REMOVE, {"id": passkey_id, "person_id": person_id})
        return row.first() is not None

    async def remove_added_with(self, device_id: DeviceId) -> bool:
        """See the port."""
        return (await self._connection.execute(_REMOVE_ADDED_WITH, {"device_id": device_id})).first() is not None

    async def came_to_add(self, device_id: DeviceId, window_s: float) -> bool:
        """See the port."""
        row = await self._connection.execute(_CAME_TO_ADD, {"device_id": device_id, "window_s": window_s})
        return row.first() is not None


def _passkey(row: Any) -> Passkey:
    return Passkey(row.id, row.name, bytes(row.credential_id), row.backed_up, row.created_at, row.last_used_at)
