"""The audit log: the closed list of actions, and the proof that no row was changed or removed.

Each row carries SHA-256 over the hash of the row before and its own canonical text. The database writes it
(``bothy_append``); this module computes the same by itself, so that a check does not trust the database's own function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import text

from bothy_server.platform.database import Database

AUDIT_ACTIONS = frozenset(
    {
        "attempt.refused",
        "device.add",
        "device.approve",
        "device.login",
        "device.logout",
        "device.revoke",
        "host.confirm",
        "host.connect",
        "host.create",
        "host.grant",
        "host.owner",
        "host.pair",
        "host.pairing_code",
        "host.rename",
        "host.state",
        "invite.create",
        "passkey.add",
        "passkey.remove",
        "person.add",
        "person.state",
        "step_up.confirm",
        "terminal.attach",
        "terminal.close",
        "terminal.open",
        "terminal.terminate",
    }
)
"""Everything that is audited. ``terminal.terminate`` is every end that nobody asked for."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_READ = text(
    "SELECT position, at, action, code, person_id, device_id, host_id, session_id, hash,"
    " subject_person_id, subject_device_id FROM audit_log WHERE position > :after ORDER BY position LIMIT :batch"
)


@dataclass(frozen=True, slots=True)
class AuditRow:
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


@dataclass(frozen=True, slots=True)
class ChainReport:
    """``broken_at`` is the first position that does not follow from the row before; ``rows`` counts those before it.

    Rows cut off at the end leave a whole chain: compare ``rows`` and ``head`` with a report kept elsewhere.
    """

    rows: int
    head: bytes
    broken_at: int | None


async def verify_chain(database: Database, batch: int) -> ChainReport:
    """Walk the whole log, ``batch`` rows at a time. Raises :class:`~bothy_server.kernel.unit.StorageUnavailable`."""
    rows, head = 0, b""
    while found := await _read(database, rows, batch):
        for row in found:
            if row.position != rows + 1 or row.hash != row.expected_hash(head):
                return ChainReport(rows, head, row.position)
            rows, head = row.position, row.hash
    return ChainReport(rows, head, None)


async def _read(database: Database, after: int, batch: int) -> Sequence[AuditRow]:
    async with database.connect() as connection:
        found = await connection.execute(_READ, {"after": after, "batch": batch})
        return [AuditRow(*row) for row in found]
