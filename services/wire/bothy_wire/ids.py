"""Ids on the wire: UUIDv7 in canonical lower-case form, one type each."""

from __future__ import annotations

import re
from typing import NewType
from uuid import UUID

HostId = NewType("HostId", UUID)
SessionId = NewType("SessionId", UUID)
DeviceId = NewType("DeviceId", UUID)
PersonId = NewType("PersonId", UUID)
ConnId = NewType("ConnId", UUID)
BootId = NewType("BootId", UUID)
NodeId = NewType("NodeId", UUID)
StepUpId = NewType("StepUpId", UUID)

_RANDOM_BITS = 74
_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def parse_id(text: str) -> UUID:
    """Read one canonical id; any other spelling of the same UUID is refused with ``ValueError``.

    Two spellings of one id could be hashed to two nodes by the edge (``docs/spec/edge.md``).
    """
    if _CANONICAL.fullmatch(text) is None:
        raise ValueError("not a canonical lower-case UUID")
    return UUID(text)


def uuid7(millis: int, random: int) -> UUID:
    """A UUIDv7 (RFC 9562, 5.7) of Unix milliseconds and 74 random bits; both are the caller's, so this is no clock."""
    if not (0 <= millis < 2**48 and 0 <= random < 2**_RANDOM_BITS):
        raise ValueError("a UUIDv7 holds 48 bits of time and 74 random bits")
    first, rest = random >> 62, random & (2**62 - 1)
    return UUID(int=millis << 80 | 0x7 << 76 | first << 64 | 0b10 << 62 | rest)
