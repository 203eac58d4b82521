"""Challenges and step-ups in PostgreSQL; each is spent by one conditional UPDATE, so that exactly one caller wins."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.app.ports import Challenge, ChallengePurpose, Method
from bothy_server.identity.domain.act import Act
from bothy_wire.ids import DeviceId, HostId, PersonId, StepUpId

_ADD = text("""
    INSERT INTO challenges (id, challenge_hash, purpose, device_id, person_id, host_id, profile, "session_user", expires_at)
    SELECT :id, :hash, :purpose, d.id, d.person_id, :host_id, :profile, :session_user,
           now() + make_interval(secs => :ttl_s)
    FROM (SELECT CAST(:device_id AS uuid) AS id) asked LEFT JOIN devices d ON d.id = asked.id
    WHERE d.id IS NOT DISTINCT FROM asked.id
      AND (CAST(:host_id AS uuid) IS NULL OR EXISTS (SELECT FROM hosts WHERE id = :host_id))
    RETURNING id
""")
_USE = text("""
    UPDATE challenges SET used_at = now()
    WHERE challenge_hash = :hash AND device_id IS NOT DISTINCT FROM CAST(:device_id AS uuid) AND purpose = :purpose
      AND used_at IS NULL AND expires_at > now()
    RETURNING id
""")
_USE_STEP_UP = text("""
    UPDATE challenges SET used_at = now()
    WHERE challenge_hash = :hash AND device_id = :device_id
      AND purpose IN ('open', 'attach', 'manage_host', 'manage_relay', 'manage_account')
      AND used_at IS NULL AND expires_at > now()
    RETURNING purpose, host_id, profile, "session_user" AS as_user
""")
_ADD_STEP_UP = text("""
    INSERT INTO step_ups (id, person_id, device_id, purpose, host_id, profile, "session_user", method, expires_at)
    VALUES (:id, :person_id, :device_id, :purpose, :host_id, :profile, :session_user, :method, now() + make_interval(secs => :ttl_s))
""")
_CONSUME = text("""
    UPDATE step_ups SET consumed_at = now()
    WHERE id = :id AND person_id = :person_id AND device_id = :device_id AND purpose = :purpose
      AND host_id IS NOT DISTINCT FROM CAST(:host_id AS uuid) AND profile IS NOT DISTINCT FROM CAST(:profile AS text)
      AND "session_user" IS NOT DISTINCT FROM CAST(:session_user AS text) AND consumed_at IS NULL AND expires_at > now()
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
        wanted = challenge.wanted
        act = asdict(wanted) if isinstance(wanted, Act) else {"purpose": wanted, **_NOTHING}
        values = {
            "id": challenge_id,
            "device_id": challenge.device_id,
            "ttl_s": ttl_s,
            **_hashed(challenge.value),
            **act,
        }
        return (await self._connection.execute(_ADD, values)).first() is not None

    async def use(self, value: bytes, device_id: DeviceId | None, purpose: ChallengePurpose) -> bool:
        """See the port."""
        values = {"device_id": device_id, "purpose": purpose, **_hashed(value)}
        return (await self._connection.execute(_USE, values)).first() is not None

    async def use_step_up(self, value: bytes, device_id: DeviceId) -> Act | None:
        """See the port."""
        row = (await self._connection.execute(_USE_STEP_UP, {"device_id": device_id, **_hashed(value)})).first()
        if row is None:
            return None
        return Act(row.purpose, None if row.host_id is None else HostId(row.host_id), row.profile, row.as_user)

    async def add_step_up(
        self, step_up_id: StepUpId, person_id: PersonId, device_id: DeviceId, act: Act, method: Method, ttl_s: float
    ) -> None:
        """See the port."""
        who = {"id": step_up_id, "person_id": person_id, "device_id": device_id}
        await self._connection.execute(_ADD_STEP_UP, {**who, "method": method, "ttl_s": ttl_s, **asdict(act)})

    async def consume_step_up(self, step_up_id: StepUpId, person_id: PersonId, device_id: DeviceId, act: Act) -> bool:
        """See the port."""
        who = {"id": step_up_id, "person_id": person_id, "device_id": device_id}
        return (await self._connection.execute(_CONSUME, {**who, **asdict(act)})).first() is not None

    async def prune(self) -> int:
        """See the port."""
        return int((await self._connection.execute(_PRUNE)).scalar_one())


_NOTHING = {"host_id": None, "profile": None, "session_user": None}


def _hashed(value: bytes) -> dict[str, bytes]:
    return {"hash": hashlib.sha256(value).digest()}
