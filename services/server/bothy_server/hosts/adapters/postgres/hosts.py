"""Hosts and pairing codes in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

from psycopg.errors import UniqueViolation
from sqlalchemy import Row, TextClause, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.hosts.domain.host import Host, HostState
from bothy_wire.ids import ConnId, HostId

_SELECT = """
    SELECT id, name, state, disabled_reason, signing_key, channel_key, pairing_seq, boot_id, last_conn_id,
           join_confirmed, join_offered, reported_profiles, reported_require_local_confirm, last_seen_at FROM hosts
"""
_ADD = text("INSERT INTO hosts (id, name, pairing_seq) VALUES (:id, :name, 1) ON CONFLICT DO NOTHING RETURNING id")
_GET = text(_SELECT + "WHERE id = :id")
_LOCK = text(_SELECT + "WHERE id = :id FOR UPDATE")
_MANY = text(_SELECT + "WHERE id = ANY(:ids) ORDER BY name")
_ALL = text(_SELECT + "ORDER BY name")
_FIND = text(_SELECT + "WHERE name = :name AND state <> 'retired'")
_RENAME = text("UPDATE hosts SET name = :name WHERE id = :id")
_VOID_CODES = text("UPDATE pairing_codes SET used_at = now() WHERE host_id = :host_id AND used_at IS NULL")
_ADD_CODE = text(
    "INSERT INTO pairing_codes (id, host_id, code_hash, expires_at)"
    " VALUES (:id, :host_id, :code_hash, now() + make_interval(secs => :ttl_s))"
)
# The host is held before its code, as by who issues one. A code does not outlive the wish to pair.
_USE_CODE = text("""
    WITH shown AS (
        SELECT c.id FROM pairing_codes c JOIN hosts h ON h.id = c.host_id
        WHERE c.code_hash = :code_hash AND c.used_at IS NULL AND c.expires_at > now() AND h.state = 'pending'
        FOR UPDATE OF h
    )
    UPDATE pairing_codes c SET used_at = now() FROM shown WHERE c.id = shown.id AND c.used_at IS NULL RETURNING c.host_id
""")
_PRUNE_CODES = text("DELETE FROM pairing_codes WHERE expires_at < now()")
_CLEAR_PAIRING = text("""
    UPDATE hosts SET pairing_seq = pairing_seq + 1, signing_key = NULL, channel_key = NULL, state = 'pending',
                     disabled_reason = NULL, join_confirmed = 0, join_offered = 0, boot_id = NULL, last_conn_id = NULL,
                     reported_profiles = '{}'
    WHERE id = :id
""")
_STORE_KEYS = text("""
    UPDATE hosts SET signing_key = :signing_key, channel_key = :channel_key, state = :state, join_offered = :join_offered
    WHERE id = :id
""")
_SET_STATE = text("UPDATE hosts SET state = :state, disabled_reason = :reason WHERE id = :id")
_DISABLE = text(
    "UPDATE hosts SET state = 'disabled', disabled_reason = :reason"
    " WHERE id = :id AND state = 'active' AND pairing_seq = :pairing_seq RETURNING id"
)
_IDENTIFY = text("""
    UPDATE hosts SET last_conn_id = :conn_id, boot_id = :boot_id, join_confirmed = :confirmed, join_offered = :offered,
                     last_seen_at = now()
    WHERE id = :id
""")
_REPORT = text("""
    UPDATE hosts SET reported_profiles = CAST(:profiles AS jsonb), reported_require_local_confirm = :local_confirm,
                     reported_os = :os, reported_arch = :arch, join_confirmed = join_offered
    WHERE id = :id AND last_conn_id = :conn_id
""")
_TOUCH = text("UPDATE hosts SET last_seen_at = now() WHERE id = ANY(:ids)")


class PostgresHostStore:
    """Implements the port ``HostStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def add(self, host_id: HostId, name: str) -> bool:
        """See the port."""
        return (await self._connection.execute(_ADD, {"id": host_id, "name": name})).first() is not None

    async def get(self, host_id: HostId) -> Host | None:
        """See the port."""
        return _one((await self._connection.execute(_GET, {"id": host_id})).first())

    async def lock(self, host_id: HostId) -> Host | None:
        """See the port."""
        return _one((await self._connection.execute(_LOCK, {"id": host_id})).first())

    async def many(self, host_ids: Iterable[HostId]) -> list[Host]:
        """See the port."""
        return [_host(row) for row in await self._connection.execute(_MANY, {"ids": list(host_ids)})]

    async def all(self) -> list[Host]:
        """See the port."""
        return [_host(row) for row in await self._connection.execute(_ALL)]

    async def find(self, name: str) -> Host | None:
        """See the port."""
        return _one((await self._connection.execute(_FIND, {"name": name})).first())

    async def rename(self, host_id: HostId, name: str) -> bool:
        """See the port."""
        return await self._unless_taken(_RENAME, {"id": host_id, "name": name})

    async def add_code(self, code_id: UUID, host_id: HostId, code_hash: bytes, ttl_s: float) -> None:
        """See the port."""
        await self._connection.execute(_VOID_CODES, {"host_id": host_id})
        values = {"id": code_id, "host_id": host_id, "code_hash": code_hash, "ttl_s": ttl_s}
        await self._connection.execute(_ADD_CODE, values)

    async def use_code(self, code_hash: bytes) -> HostId | None:
        """See the port."""
        row = (await self._connection.execute(_USE_CODE, {"code_hash": code_hash})).first()
        return None if row is None else HostId(row.host_id)

    async def prune_codes(self) -> int:
        """See the port."""
        return (await self._connection.execute(_PRUNE_CODES)).rowcount

    async def clear_pairing(self, host_id: HostId) -> None:
        """See the port."""
        await self._connection.execute(_CLEAR_PAIRING, {"id": host_id})

    async def store_keys(
        self, host_id: HostId, signing_key: bytes, channel_key: bytes, state: HostState, join_offered: int
    ) -> bool:
        """See the port."""
        keys = {"signing_key": signing_key, "channel_key": channel_key}
        values = {"id": host_id, "state": state.value, "join_offered": join_offered, **keys}
        return await self._unless_taken(_STORE_KEYS, values)

    async def set_state(self, host_id: HostId, state: HostState, reason: str | None = None) -> None:
        """See the port."""
        await self._connection.execute(_SET_STATE, {"id": host_id, "state": state.value, "reason": reason})

    async def disable(self, host_id: HostId, pairing_seq: int, reason: str) -> bool:
        """See the port."""
        values = {"id": host_id, "pairing_seq": pairing_seq, "reason": reason}
        return (await self._connection.execute(_DISABLE, values)).first() is not None

    async def record_identify(
        self, host_id: HostId, conn_id: ConnId, boot_id: UUID, join_confirmed: int, join_offered: int
    ) -> None:
        """See the port."""
        counters = {"confirmed": join_confirmed, "offered": join_offered}
        await self._connection.execute(_IDENTIFY, {"id": host_id, "conn_id": conn_id, "boot_id": boot_id, **counters})

    async def record_report(
        self,
        host_id: HostId,
        conn_id: ConnId,
        profiles: Mapping[str, Sequence[str]],
        *,
        local_confirm: bool,
        os: str,
        arch: str,
    ) -> None:
        """See the port."""
        offered = json.dumps({name: list(users) for name, users in profiles.items()})
        values = {"profiles": offered, "local_confirm": local_confirm, "os": os, "arch": arch}
        await self._connection.execute(_REPORT, {"id": host_id, "conn_id": conn_id, **values})

    async def touch(self, host_ids: Iterable[HostId]) -> None:
        """See the port."""
        await self._connection.execute(_TOUCH, {"ids": list(host_ids)})

    async def _unless_taken(self, statement: TextClause, values: Mapping[str, object]) -> bool:
        """Whether no other host has what has to be unique."""
        try:
            await self._connection.execute(statement, values)
        except IntegrityError as error:
            if isinstance(error.orig, UniqueViolation):
                return False
            raise
        return True


def _one(row: Row[Any] | None) -> Host | None:
    return None if row is None else _host(row)


def _host(row: Row[Any]) -> Host:
    return Host(
        id=HostId(row.id),
        name=row.name,
        state=HostState(row.state),
        disabled_reason=row.disabled_reason,
        signing_key=None if row.signing_key is None else bytes(row.signing_key),
        channel_key=None if row.channel_key is None else bytes(row.channel_key),
        pairing_seq=row.pairing_seq,
        boot_id=row.boot_id,
        last_conn_id=None if row.last_conn_id is None else ConnId(row.last_conn_id),
        join_confirmed=row.join_confirmed,
        join_offered=row.join_offered,
        profiles=MappingProxyType({name: tuple(users) for name, users in row.reported_profiles.items()}),
        require_local_confirm=row.reported_require_local_confirm,
        last_seen_at=row.last_seen_at,
    )
