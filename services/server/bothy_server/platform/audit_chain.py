"""The proof that no row of the audit log was changed, removed or put in (``docs/spec/data.md``, Audit log).

Each row carries SHA-256 over the hash of the row before and its own canonical text. The database writes it
(``bothy_append``); this module computes the same by itself, so that a check does not trust the database's own function.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from sqlalchemy import text

from bothy_server.platform.database import Database

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEFORE_ALL = -(1 << 63)
"""A row that somebody puts before the first one is found too."""
_READ = text("""
    SELECT position, at, action, code, person_id, device_id, host_id, session_id, hash, subject_person_id, subject_device_id
    FROM audit_log WHERE position > :after AND position <= :until ORDER BY position LIMIT :batch
""")
_HEAD = text("SELECT coalesce(max(position), 0) FROM audit_log")
_HASH = text("SELECT hash FROM audit_log WHERE position = :position")


class AuditRow(msgspec.Struct, frozen=True):
    """One row as it is stored."""

    position: int
    at: datetime
    action: str
    code: str
    person_id: UUID | None
    device_id: UUID | None
    host_id: UUID | None
    session_id: UUID | None
    hash: bytes
    subject_person_id: UUID | None
    subject_device_id: UUID | None

    def expected_hash(self, previous: bytes) -> bytes:
        """What :attr:`hash` must be behind a row with hash ``previous`` (empty before the first row)."""
        microseconds = (self.at - _EPOCH) // timedelta(microseconds=1)
        subject = (self.subject_person_id, self.subject_device_id)
        ids = (self.person_id, self.device_id, self.host_id, self.session_id, *(subject if any(subject) else ()))
        lines = (self.position, microseconds, self.action, self.code, *("" if each is None else each for each in ids))
        return hashlib.sha256(previous + "\n".join(map(str, lines)).encode()).digest()


@dataclass(slots=True)
class Chain:
    """Follows the log row by row. ``rows`` is the position of the last row that follows, ``head`` its hash."""

    rows: int = 0
    head: bytes = b""

    def follows(self, row: AuditRow) -> bool:
        """Whether it comes right behind the row before; then it is the last one now."""
        if row.position != self.rows + 1 or row.hash != row.expected_hash(self.head):
            return False
        self.rows, self.head = row.position, row.hash
        return True


@dataclass(frozen=True, slots=True)
class ChainReport:
    """``broken_at`` is the first position that does not follow from the row before; ``rows`` counts those before it.

    Rows cut off at the end leave a whole chain: compare with a report that was kept elsewhere. ``kept_head`` is the hash
    of the row that such a report ended with, None when it is not there.
    """

    rows: int
    head: bytes
    broken_at: int | None
    kept_head: bytes | None = None


class AuditLog:
    """Reads the log of one database in order, ``batch`` rows in memory.

    Everything raises :class:`~bothy_server.kernel.unit.StorageUnavailable`.
    """

    def __init__(self, database: Database, batch: int) -> None:
        """``batch`` rows are one transaction."""
        self._database = database
        self._batch = batch

    async def rows(self, after: int = _BEFORE_ALL) -> AsyncIterator[AuditRow]:
        """The rows behind position ``after`` that are there now; those that come meanwhile are left for another time."""
        until = await self.head()
        while after < until:
            async with self._database.connect() as connection:
                values = {"after": after, "until": until, "batch": self._batch}
                found = [AuditRow(*row) for row in await connection.execute(_READ, values)]
            if not found:  # the rest was cut off meanwhile
                return
            for row in found:
                yield row
            after = found[-1].position

    async def head(self) -> int:
        """The last position."""
        async with self._database.connect() as connection:
            found: int = (await connection.execute(_HEAD)).scalar_one()
            return found

    async def hash_at(self, position: int) -> bytes | None:
        """The hash of a row as it is stored; empty before the first row, None for a position that is not there."""
        if position == 0:
            return b""
        async with self._database.connect() as connection:
            found = (await connection.execute(_HASH, {"position": position})).scalar_one_or_none()
            return None if found is None else bytes(found)

    async def verify(self, progress: Callable[[int], None], kept_rows: int = 0) -> ChainReport:
        """Walk the whole log; ``progress`` hears of every row. ``kept_rows``: of which row to report the hash."""
        chain, kept = Chain(), None if kept_rows else b""
        async for row in self.rows():
            if not chain.follows(row):
                return ChainReport(chain.rows, chain.head, row.position, kept)
            if row.position == kept_rows:
                kept = row.hash
            progress(chain.rows)
        return ChainReport(chain.rows, chain.head, None, kept)
