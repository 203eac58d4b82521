"""Who makes a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bothy_wire.ids import DeviceId, PersonId

DeviceKind = Literal["cli", "browser"]


@dataclass(frozen=True, slots=True)
class Caller:
    """A signed-in person and the device that they sit at."""

    person_id: PersonId
    device_id: DeviceId
    is_operator: bool
    kind: DeviceKind


@dataclass(frozen=True, slots=True)
class RepeatKey:
    """A caller's own name for one act (``Idempotency-Key``). ``request_hash``: SHA-256 over what was asked, 32 bytes.

    ``life_s``: how long what it made is remembered, in seconds.
    """

    key: str
    request_hash: bytes
    life_s: float
