"""Keys of requests in PostgreSQL. A key's row is its lock: whoever wrote it and has not committed holds it."""

from __future__ import annotations

from typing import Literal

from psycopg.errors import LockNotAvailable
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.app.repeats import Made, Remembered
from bothy_server.kernel.caller import Caller, RepeatKey

# A row whose life is over counts as none, also before it is pruned.
_CLAIM = text("""
    INSERT INTO idempotency_keys AS known (person_id, device_id, key, request_hash, expires_at)
    VALUES (:person_id, :device_id, :key, :request_hash, now() + make_interval(secs => :life_s))
    ON CONFLICT (person_id, device_id, key) DO UPDATE
    SET request_hash = excluded.request_hash, expires_at = excluded.expires_at, created_at = now(),
        made_id = NULL, attach_seq = NULL
    WHERE known.expires_at <= now()
    RETURNING 1
""")
_FIND = text("""
    SELECT request_hash, made_id, attach_seq FROM idempotency_keys
    WHERE person_id = :person_id AND device_id = :device_id AND key = :key
""")
_SETTLE = text("""
    UPDATE idempotency_keys SET made_id = :made_id, attach_seq = :attach_seq
    WHERE person_id = :person_id AND device_id = :device_id AND key = :key
""")


class PostgresRepeatStore:
    """Implements the port ``RepeatStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def claim(self, caller: Caller, repeat: RepeatKey) -> Remembered | Literal["claimed", "running"]:
        """See the port. The wait is ``database.lock_timeout``."""
        named = _named(caller, repeat)
        values = {**named, "request_hash": repeat.request_hash, "life_s": repeat.life_s}
        try:
            claimed = (await self._connection.execute(_CLAIM, values)).first()
        except DBAPIError as error:
            if isinstance(error.orig, LockNotAvailable):
                return "running"
            raise
        if claimed is not None:
            return "claimed"
        row = (await self._connection.execute(_FIND, named)).one()
        return Remembered(bytes(row.request_hash), Made(row.made_id, row.attach_seq))

    async def settle(self, caller: Caller, repeat: RepeatKey, made: Made) -> None:
        """See the port."""
        values = {**_named(caller, repeat), "made_id": made.id, "attach_seq": made.attach_seq}
        await self._connection.execute(_SETTLE, values)


def _named(caller: Caller, repeat: RepeatKey) -> dict[str, object]:
    return {"person_id": caller.person_id, "device_id": caller.device_id, "key": repeat.key}
