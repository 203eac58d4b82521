"""Persons as a whole, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.identity.app.people import Person
from bothy_wire.ids import PersonId

_PERSONS = """
    SELECT p.id, p.name, p.is_operator, p.created_at, p.disabled_at,
           count(d.id) FILTER (WHERE d.revoked_at IS NULL) AS devices, count(d.id) > 0 AS had_devices,
           max(d.last_used_at) AS last_used_at
    FROM persons p LEFT JOIN devices d ON d.person_id = p.id WHERE {which} GROUP BY p.id ORDER BY p.name
"""
_ALL = text(_PERSONS.format(which="true"))
_GET = text(_PERSONS.format(which="p.id = :id"))
_LOCK = text("SELECT id FROM persons WHERE id = :id FOR NO KEY UPDATE")
_FIND = text(_PERSONS.format(which="p.name = :name"))
# Also those who are disabled: one of them may be enabled meanwhile.
_HOLD_OPERATORS = text("SELECT id, disabled_at FROM persons WHERE is_operator ORDER BY id FOR NO KEY UPDATE")
_SET_DISABLED = text("""
    UPDATE persons SET disabled_at = CASE WHEN :disabled THEN now() END
    WHERE id = :id AND (disabled_at IS NOT NULL) <> :disabled RETURNING id
""")
_SET_OPERATOR = text(
    "UPDATE persons SET is_operator = :is_operator WHERE id = :id AND is_operator <> :is_operator RETURNING id"
)
# Step-ups first: that waits for whoever is just spending one, and the second statement sees what they made.
_FORGET_PROOFS = text("""
    WITH asked AS (DELETE FROM challenges WHERE person_id = :id) DELETE FROM step_ups WHERE person_id = :id
""")
_FORGET_ENTRIES = text("""
    WITH waiting AS (DELETE FROM device_logins WHERE person_id = :id)
    DELETE FROM invites WHERE person_id = :id AND used_at IS NULL
""")


class PostgresPeopleStore:
    """Implements the port ``PeopleStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def all(self) -> list[Person]:
        """See the port."""
        return [_person(row) for row in await self._connection.execute(_ALL)]

    async def get(self, person_id: PersonId) -> Person | None:
        """See the port."""
        return _maybe((await self._connection.execute(_GET, {"id": person_id})).first())

    async def lock(self, person_id: PersonId) -> Person | None:
        """See the port."""
        await self._connection.execute(_LOCK, {"id": person_id})
        return await self.get(person_id)  # a statement of its own sees what the lock waited for

    async def find(self, name: str) -> Person | None:
        """See the port."""
        return _maybe((await self._connection.execute(_FIND, {"name": name})).first())

    async def hold_operators(self) -> Collection[PersonId]:
        """See the port."""
        rows = await self._connection.execute(_HOLD_OPERATORS)
        return {PersonId(row.id) for row in rows if row.disabled_at is None}

    async def set_disabled(self, person_id: PersonId, *, disabled: bool) -> bool:
        """See the port."""
        values = {"id": person_id, "disabled": disabled}
        return (await self._connection.execute(_SET_DISABLED, values)).first() is not None

    async def set_operator(self, person_id: PersonId, *, is_operator: bool) -> bool:
        """See the port."""
        values = {"id": person_id, "is_operator": is_operator}
        return (await self._connection.execute(_SET_OPERATOR, values)).first() is not None

    async def forget_open(self, person_id: PersonId) -> None:
        """See the port."""
        await self._connection.execute(_FORGET_PROOFS, {"id": person_id})
        await self._connection.execute(_FORGET_ENTRIES, {"id": person_id})


def _maybe(row: Row[Any] | None) -> Person | None:
    return None if row is None else _person(row)


def _person(row: Row[Any]) -> Person:
    return Person(
        id=PersonId(row.id),
        name=row.name,
        is_operator=row.is_operator,
        created_at=row.created_at,
        disabled_at=row.disabled_at,
        devices=row.devices,
        had_devices=row.had_devices,
        last_used_at=row.last_used_at,
    )
