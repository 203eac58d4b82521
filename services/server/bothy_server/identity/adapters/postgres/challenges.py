"""Challenges and step-ups in PostgreSQL; each is spent by one conditional UPDATE, so that exactly one caller wins."""

from __future__ import annotations

import hashlib
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.app.ports import Challenge
from bothy_wire.ids import DeviceId, HostId, PersonId, StepUpId

_ADD = text("""
    INSERT INTO challenges (id, challenge_hash, purpose, device_id, person_id, host_id, profile, "session_user", expires_at)
    SELECT :id, :hash, :purpose, d.id, d.person_id, :host_id, :profile, :session_user,
           now() + make_interval(secs => :ttl_s)
    FROM devices d WHERE d.id = :device_id AND (CAST(:host_id AS uuid) IS NULL OR EXISTS (SELECT FROM hosts WHERE id = :host_id))
    RETURNING id
""")
_USE = text("""
    UPDATE challenges SET used_at = now()
    WHERE challenge_hash = :hash AND device_id = :device_id AND (purpose = 'login') = :login
      AND used_at IS NULL AND expires_at > now()
    RETURNING purpose, host_id, profile, "session_user" AS as_user
""")
_ADD_STEP_UP = text("""
    INSERT INTO step_ups (id, person_id, device_id, purpose, host_id, profile, "session_user", expires_at)
    VALUES (:id, :person_id, :device_id, :purpose, :host_id, :profile, :session_user, now() + make_interval(secs => :ttl_s))
""")
_CONSUME = text("""
    UPDATE step_ups SET consumed_at = now()
    WHERE id = :id AND person_id = :person_id AND device_id = :device_id AND purpose = :purpose AND host_id = :host_id
      AND profile = :profile AND "session_user" = :session_user AND consumed_at IS NULL AND expires_at > now()
    RETURNING id
""")
_PRUNE = text("""
    WITH gone AS (DELETE FROM challenges WHERE expires_at < now() RETURNING 1),
         spent AS (DELETE FROM step_ups WHERE expires_at < now() RETURNING 1),
         invited AS (DELETE FROM invites WHERE expires_at < now() RETURNING 1),
         answered AS (DELETE FROM idempotency_keys WHERE expires_at < now() RETURNING 1)
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM spent) + (SELECT count(*) FROM invited)
           + (SELECT count(*) FROM answered) AS rows
""")


class PostgresChallengeStore:
    """Implements the port ``ChallengeStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def add(self, challenge_id: UUID, challenge: Challenge, ttl_s: float) -> bool:
        """See the port."""
        hashed = hashlib.sha256(challenge.value).digest()
        values = {"id": challenge_id, "hash": hashed, "ttl_s": ttl_s, **_act(challenge)}
        return (await self._connection.execute(_ADD, values)).first() is not None

    async def use(self, value: bytes, device_id: DeviceId, *, login: bool) -> Challenge | None:
        """See the port."""
        values = {"hash": hashlib.sha256(value).digest(), "device_id": device_id, "login": login}
        row = (await self._connection.execute(_USE, values)).first()
        if row is None:
            return None
        host_id = None if row.host_id is None else HostId(row.host_id)
        return Challenge(value, device_id, row.purpose, host_id, row.profile, row.as_user)

    async def add_step_up(self, step_up_id: StepUpId, person_id: PersonId, proof: Challenge, ttl_s: float) -> None:
        """See the port."""
        values = {"id": step_up_id, "person_id": person_id, "ttl_s": ttl_s, **_act(proof)}
        await self._connection.execute(_ADD_STEP_UP, values)

    async def consume_step_up(self, step_up_id: StepUpId, person_id: PersonId, wanted: Challenge) -> bool:
        """See the port."""
        values = {"id": step_up_id, "person_id": person_id, **_act(wanted)}
        return (await self._connection.execute(_CONSUME, values)).first() is not None

    async def prune(self) -> int:
        """See the port."""
        return int((await self._connection.execute(_PRUNE)).scalar_one())


def _act(challenge: Challenge) -> dict[str, object]:
    return {
        "purpose": challenge.purpose,
        "device_id": challenge.device_id,
        "host_id": challenge.host_id,
        "profile": challenge.profile,
        "session_user": challenge.session_user,
    }
