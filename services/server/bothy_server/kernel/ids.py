"""Making ids: UUIDv7, so that ids sort by the time they were made."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from uuid import UUID

from bothy_wire.ids import uuid7


def new_id(at: datetime) -> UUID:
    """A UUIDv7 with the millisecond of ``at``."""
    return uuid7(int(at.timestamp() * 1000), secrets.randbits(74))


def time_of(uuid7: UUID) -> datetime:
    """The instant inside a UUIDv7, to the millisecond."""
    return datetime.fromtimestamp((uuid7.int >> 80) / 1000, tz=UTC)
