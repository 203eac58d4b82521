"""REST of the audit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, structs

from bothy_server.identity.app.audit import Audit, AuditFilter, AuditPage
from bothy_server.kernel.problems import Problem
from bothy_server.platform.audit import AUDIT_ACTIONS
from bothy_server.platform.operations import Call, operation

Action = Annotated[str, Meta(extra_json_schema={"enum": sorted(AUDIT_ACTIONS)})]
Instant = Annotated[datetime, Meta(tz=True)]
_LAST_POSITION = (1 << 63) - 1


class AuditAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an entry must have; a person or device as the one that acted or as the subject. Newest entries come first."""

    action: Action | None = None
    person_id: UUID | None = None
    device_id: UUID | None = None
    host_id: UUID | None = None
    session_id: UUID | None = None
    since: Instant | None = None
    """Not older than this."""
    until: Instant | None = None
    """Older than this."""
    before: Annotated[int, Meta(ge=1, le=_LAST_POSITION)] | None = None
    """What the page before this one says of itself."""
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    """How many entries at most."""


class AuditEntryBody(msgspec.Struct, frozen=True, kw_only=True):
    """A decision. ``person_id`` and ``device_id`` acted, ``subject_person_id`` and ``subject_device_id`` it is about."""

    position: int
    at: Instant
    action: str
    code: str
    person_id: UUID | None
    device_id: UUID | None
    host_id: UUID | None
    session_id: UUID | None
    subject_person_id: UUID | None
    subject_device_id: UUID | None


class AuditPageBody(msgspec.Struct, frozen=True):
    """Entries, newest first; also a page without one may not be the last."""

    entries: list[AuditEntryBody]
    before: int | None
    """Asks for the next page; null behind the last one."""


@dataclass(frozen=True, slots=True)
class AuditReading:
    """Who decided what."""

    audit: Audit

    @operation("GET", "/api/v1/audit", query=AuditAsked, refuses={403: ("operator_required",)})
    async def read_audit(self, call: Call[None]) -> AuditPageBody:
        """All entries. Operators only."""
        asked = call.asked(AuditAsked)
        return _body(await self.audit.all(call.caller, _filter(asked), asked.before, asked.limit))

    @operation("GET", "/api/v1/audit/mine", query=AuditAsked)
    async def read_own_audit(self, call: Call[None]) -> AuditPageBody:
        """What the caller did, and what was done about them and their devices."""
        asked = call.asked(AuditAsked)
        return _body(await self.audit.mine(call.caller, _filter(asked), asked.before, asked.limit))


def _filter(asked: AuditAsked) -> AuditFilter:
    if asked.action is not None and asked.action not in AUDIT_ACTIONS:
        raise Problem(400, "query_invalid", "There is no such action.")
    page = {"before", "limit"}
    return AuditFilter(**{name: value for name, value in structs.asdict(asked).items() if name not in page})


def _body(page: AuditPage) -> AuditPageBody:
    return AuditPageBody([AuditEntryBody(**asdict(each)) for each in page.entries], page.before)
