"""Reading the audit: all of it to operators, and to a person what they did and what was done about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from bothy_server.identity.app.standing import operator_required
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.unit import UnitOfWork
from bothy_wire.ids import PersonId


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One decision: who acted, and whom it is about. ``position`` counts all entries from 1 on."""

    position: int
    at: datetime
    action: str
    code: str
    person_id: UUID | None
    device_id: UUID | None
    host_id: UUID | None
    session_id: UUID | None
    subject_person_id: UUID | None
    subject_device_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """What an entry must have. A person or device fits as the one that acted and as the subject; ``until`` excludes itself."""

    action: str | None = None
    person_id: UUID | None = None
    device_id: UUID | None = None
    host_id: UUID | None = None
    session_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Entries, newest first. ``before`` asks for the page behind, and is None behind the first entry of all."""

    entries: Sequence[AuditRecord]
    before: int | None


class AuditStore(Protocol):
    """The rows."""

    async def head(self) -> int:
        """The last position."""

    async def entries(
        self, asked: AuditFilter, of: PersonId | None, first: int, before: int, limit: int
    ) -> list[AuditRecord]:
        """At most ``limit`` that fit, from ``before``, which is not among them, back to ``first``, which may be.

        ``of``: only those that this person or a device of theirs has a part in.
        """


class Audit:
    """Pages of the audit. A page looks at ``scan`` rows and no more, so it may have no entry and yet not be the last."""

    def __init__(self, uow: UnitOfWork, scan: int) -> None:
        """``scan`` is the key ``identity.audit_scan``."""
        self._uow = uow
        self._scan = scan

    async def all(self, caller: Caller, asked: AuditFilter, before: int | None, limit: int) -> AuditPage:
        """Everybody's entries. Raises 403 ``operator_required``."""
        if not caller.is_operator:
            raise operator_required()
        return await self._page(asked, None, before, limit)

    async def mine(self, caller: Caller, asked: AuditFilter, before: int | None, limit: int) -> AuditPage:
        """The caller's own."""
        return await self._page(asked, caller.person_id, before, limit)

    async def _page(self, asked: AuditFilter, of: PersonId | None, before: int | None, limit: int) -> AuditPage:
        async with self._uow() as unit:
            store = unit.of(AuditStore)
            end = await store.head() + 1 if before is None else before
            first = max(1, end - self._scan)
            entries = await store.entries(asked, of, first, end, limit)
        reached = entries[-1].position if len(entries) == limit else first
        return AuditPage(entries, reached if reached > 1 else None)
