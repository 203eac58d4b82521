"""Logins that wait for a person's approval, in PostgreSQL."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.app.device_logins import Asking, DeviceLoginLimits, LetIn, Polled, Waiting
from bothy_wire.ids import DeviceId, PersonId

_ADD = text("""
    INSERT INTO device_logins (id, device_code_hash, user_code_hash, name, signing_key, channel_key, expires_at)
    SELECT :id, :device_code_hash, :user_code_hash, :name, :signing_key, :channel_key,
           now() + make_interval(secs => :ttl_s)
    WHERE (SELECT count(*) FROM device_logins WHERE expires_at > now()) < :most
    RETURNING id
""")
_KNOWN = text("SELECT id FROM devices WHERE signing_key = :signing_key OR channel_key = :channel_key LIMIT 1")
# What was decided is told however often it is asked, what waits not too often.
_POLL = text("""
    WITH asking AS (
        SELECT id, device_id, approved, polled_at FROM device_logins
        WHERE device_code_hash = :device_code_hash AND expires_at > now() FOR UPDATE
    ), noted AS (
        UPDATE device_logins l SET polled_at = now() FROM asking WHERE l.id = asking.id
    )
    SELECT a.approved IS NULL AND coalesce(a.polled_at > now() - make_interval(secs => :interval_s), false) AS too_soon,
           a.approved IS false AS denied, d.id AS device_id, p.id AS person_id, p.name AS person_name
    FROM asking a LEFT JOIN devices d ON d.id = a.device_id LEFT JOIN persons p ON p.id = d.person_id
""")
_FIND = text("""
    SELECT id, name, channel_key, expires_at FROM device_logins
    WHERE user_code_hash = :user_code_hash AND decided_at IS NULL AND expires_at > now()
""")
_APPROVE = text("""
    WITH chosen AS (
        SELECT * FROM device_logins WHERE id = :id AND decided_at IS NULL AND expires_at > now() FOR UPDATE
    ), made AS (
        INSERT INTO devices (id, person_id, name, kind, signing_key, channel_key, added_by)
        SELECT :device_id, :person_id, name, 'cli', signing_key, channel_key, 'approval' FROM chosen
        ON CONFLICT DO NOTHING RETURNING id
    )
    UPDATE device_logins l SET decided_at = now(), approved = true, person_id = :person_id, device_id = made.id,
           expires_at = now() + make_interval(secs => :ttl_s)
    FROM made WHERE l.id = :id RETURNING l.id
""")
_DENY = text("""
    UPDATE device_logins SET decided_at = now(), approved = false, person_id = :person_id
    WHERE id = :id AND decided_at IS NULL AND expires_at > now() RETURNING id
""")
_PRUNE = text("DELETE FROM device_logins WHERE expires_at < now()")


class PostgresDeviceLoginStore:
    """Implements the port ``DeviceLoginStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def add(
        self, login_id: UUID, asking: Asking, device_code_hash: bytes, user_code_hash: bytes, limits: DeviceLoginLimits
    ) -> bool:
        """See the port."""
        keys = {"name": asking.name, "signing_key": asking.signing_key, "channel_key": asking.channel_key}
        codes = {"device_code_hash": device_code_hash, "user_code_hash": user_code_hash}
        values = {"id": login_id, **keys, **codes, "ttl_s": limits.ttl, "most": limits.most}
        return (await self._connection.execute(_ADD, values)).first() is not None

    async def known(self, asking: Asking) -> bool:
        """See the port."""
        keys = {"signing_key": asking.signing_key, "channel_key": asking.channel_key}
        return (await self._connection.execute(_KNOWN, keys)).first() is not None

    async def poll(self, device_code_hash: bytes, interval_s: float) -> Polled | None:
        """See the port."""
        values = {"device_code_hash": device_code_hash, "interval_s": interval_s}
        row = (await self._connection.execute(_POLL, values)).first()
        if row is None:
            return None
        let_in = None if row.device_id is None else LetIn(row.device_id, row.person_id, row.person_name)
        return Polled(row.too_soon, row.denied, let_in)

    async def find(self, user_code_hash: bytes) -> Waiting | None:
        """See the port."""
        row = (await self._connection.execute(_FIND, {"user_code_hash": user_code_hash})).first()
        return None if row is None else Waiting(row.id, row.name, bytes(row.channel_key), row.expires_at)

    async def approve(self, login_id: UUID, person_id: PersonId, device_id: DeviceId, ttl_s: float) -> bool:
        """See the port."""
        values = {"id": login_id, "person_id": person_id, "device_id": device_id, "ttl_s": ttl_s}
        return (await self._connection.execute(_APPROVE, values)).first() is not None

    async def deny(self, login_id: UUID, person_id: PersonId) -> bool:
        """See the port."""
        row = await self._connection.execute(_DENY, {"id": login_id, "person_id": person_id})
        return row.first() is not None

    async def prune(self) -> int:
        """See the port."""
        return (await self._connection.execute(_PRUNE)).rowcount
