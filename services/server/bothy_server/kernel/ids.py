"""Making ids: UUIDv7, so that ids sort by the time they were made."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from uuid import UUID


def new_id(at: datetime) -> UUID:
    """A UUIDv7 (RFC 9562, 5.7) with the millisecond of ``at`` and 74 random bits."""
    millis = int(at.timestamp() * 1000)
    random = secrets.randbits(74)
    value = (millis & (1 << 48) - 1) << 80 | 0x7 << 76 | (random >> 62) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    return UUID(int=value)


def time_of(uuid7: UUID) -> datetime:
    """The instant inside a UUIDv7, to the millisecond."""
    return datetime.fromtimestamp((uuid7.int >> 80) / 1000, tz=UTC)
