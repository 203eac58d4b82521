"""Persons, invites and devices in PostgreSQL."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.app.ports import Device, DeviceKeys
from bothy_wire.ids import DeviceId, PersonId, parse_id

_ADD_PERSON = text(
    "INSERT INTO persons (id, name, is_operator) VALUES (:id, :name, :is_operator) ON CONFLICT DO NOTHING RETURNING id"
)
_FIND_PERSON = text("""
    SELECT id FROM persons WHERE (id = CAST(:id AS uuid) OR name = :name) AND disabled_at IS NULL
    ORDER BY id = CAST(:id AS uuid) DESC NULLS LAST LIMIT 1
""")
_ADD_INVITE = text(
    "INSERT INTO invites (id, person_id, code_hash, expires_at)"
    " VALUES (:id, :person_id, :code_hash, now() + make_interval(secs => :ttl_s))"
)
# The first device of a person makes their other invites void: whoever kept one could become somebody who works already.
_USE_INVITE = text("""
    WITH invited AS (
        SELECT p.id, p.name FROM persons p JOIN invites i ON i.person_id = p.id
        WHERE i.code_hash = :code_hash AND p.disabled_at IS NULL FOR NO KEY UPDATE OF p
    ), used AS (
        UPDATE invites i SET used_at = now() FROM invited
        WHERE i.code_hash = :code_hash AND i.used_at IS NULL AND i.expires_at > now()
        RETURNING invited.id, invited.name
    ), void AS (
        DELETE FROM invites i USING used
        WHERE i.person_id = used.id AND i.code_hash <> :code_hash AND i.used_at IS NULL
          AND NOT EXISTS (SELECT FROM devices d WHERE d.person_id = used.id)
    )
    SELECT id, name FROM used
""")
_ADD_DEVICE = text("""
    INSERT INTO devices (id, person_id, name, kind, signing_key, channel_key)
    VALUES (:id, :person_id, :name, 'cli', :signing_key, :channel_key) ON CONFLICT DO NOTHING RETURNING id
""")
_ADD_BROWSER = text("""
    INSERT INTO devices (id, person_id, name, kind, signing_key, channel_key, added_by, login_until)
    VALUES (:id, :person_id, :name, 'browser', :signing_key, :channel_key, :added_by, now() + make_interval(secs => :ttl_s))
    ON CONFLICT DO NOTHING RETURNING id
""")
_HOLD_KEYS = text("SELECT id FROM devices WHERE signing_key = :signing_key FOR NO KEY UPDATE")
_RENEW_LOGIN = text("""
    UPDATE devices SET login_until = now() + make_interval(secs => :ttl_s), last_used_at = now()
    WHERE signing_key = :signing_key AND channel_key = :channel_key AND person_id = :person_id
      AND kind = 'browser' AND revoked_at IS NULL
    RETURNING id
""")
_DEVICE = """
    SELECT d.id, d.person_id, d.name, d.kind, d.signing_key, d.channel_key, p.is_operator, p.name AS person_name,
           d.revoked_at IS NOT NULL AS revoked, d.revoked_at IS NULL AND p.disabled_at IS NULL AS usable,
           d.kind = 'browser' AND coalesce(d.login_until <= now(), true) AS login_over
    FROM devices d JOIN persons p ON p.id = d.person_id WHERE d.id = :id
"""
_READ_DEVICE = text(_DEVICE)
_HOLD_DEVICE = text(f"{_DEVICE} FOR NO KEY UPDATE OF d")
_TOUCH_DEVICE = text("UPDATE devices SET last_used_at = now() WHERE id = :id")


class PostgresPersonStore:
    """Implements the port ``PersonStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def add_person(self, person_id: PersonId, name: str, *, is_operator: bool) -> bool:
        """See the port."""
        row = await self._connection.execute(_ADD_PERSON, {"id": person_id, "name": name, "is_operator": is_operator})
        return row.first() is not None

    async def find_person(self, person: str) -> PersonId | None:
        """See the port."""
        try:
            person_id = parse_id(person)
        except ValueError:
            person_id = None
        row = (await self._connection.execute(_FIND_PERSON, {"id": person_id, "name": person})).first()
        return None if row is None else PersonId(row.id)

    async def add_invite(self, invite_id: UUID, person_id: PersonId, code_hash: bytes, ttl_s: float) -> None:
        """See the port."""
        values = {"id": invite_id, "person_id": person_id, "code_hash": code_hash, "ttl_s": ttl_s}
        await self._connection.execute(_ADD_INVITE, values)

    async def use_invite(self, code_hash: bytes) -> tuple[PersonId, str] | None:
        """See the port."""
        row = (await self._connection.execute(_USE_INVITE, {"code_hash": code_hash})).first()
        return None if row is None else (PersonId(row.id), row.name)

    async def add_device(
        self, device_id: DeviceId, person_id: PersonId, name: str, signing_key: bytes, channel_key: bytes
    ) -> bool:
        """See the port."""
        keys = {"signing_key": signing_key, "channel_key": channel_key}
        row = await self._connection.execute(
            _ADD_DEVICE, {"id": device_id, "person_id": person_id, "name": name, **keys}
        )
        return row.first() is not None

    async def add_browser(
        self,
        device_id: DeviceId,
        person_id: PersonId,
        name: str,
        keys: DeviceKeys,
        login_ttl_s: float,
        *,
        added_by: Literal["invite", "passkey"],
    ) -> bool:
        """See the port."""
        values = {"id": device_id, "name": name, "added_by": added_by, **_login(person_id, keys, login_ttl_s)}
        return (await self._connection.execute(_ADD_BROWSER, values)).first() is not None

    async def hold_keys(self, keys: DeviceKeys) -> None:
        """See the port."""
        await self._connection.execute(_HOLD_KEYS, {"signing_key": keys.signing})

    async def renew_login(self, person_id: PersonId, keys: DeviceKeys, login_ttl_s: float) -> DeviceId | None:
        """See the port."""
        row = (await self._connection.execute(_RENEW_LOGIN, _login(person_id, keys, login_ttl_s))).first()
        return None if row is None else DeviceId(row.id)

    async def device(self, device_id: DeviceId) -> Device | None:
        """See the port."""
        return await self._device(_READ_DEVICE, device_id)

    async def hold_device(self, device_id: DeviceId) -> Device | None:
        """See the port."""
        return await self._device(_HOLD_DEVICE, device_id)

    async def touch_device(self, device_id: DeviceId) -> None:
        """See the port."""
        await self._connection.execute(_TOUCH_DEVICE, {"id": device_id})

    async def _device(self, statement: TextClause, device_id: DeviceId) -> Device | None:
        row = (await self._connection.execute(statement, {"id": device_id})).first()
        if row is None:
            return None
        return Device(
            id=DeviceId(row.id),
            person_id=PersonId(row.person_id),
            name=row.name,
            kind=row.kind,
            signing_key=bytes(row.signing_key),
            channel_key=bytes(row.channel_key),
            usable=row.usable,
            revoked=row.revoked,
            login_over=row.login_over,
            is_operator=row.is_operator,
            person_name=row.person_name,
        )


def _login(person_id: PersonId, keys: DeviceKeys, ttl_s: float) -> dict[str, object]:
    return {"person_id": person_id, "signing_key": keys.signing, "channel_key": keys.channel, "ttl_s": ttl_s}
