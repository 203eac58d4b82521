"""Invites: one-time codes that make a device theirs whom they are for. Stored by hash only, shown once."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from bothy_server.identity.app.ports import PersonStore
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.unit import Unit
from bothy_wire.codes import CODE_BYTES, code_hash, format_code
from bothy_wire.ids import PersonId


@dataclass(frozen=True, slots=True)
class Invited:
    """Whom an invite is for. A repeat of the request that made it gets no code: that was shown before."""

    person_id: PersonId
    name: str
    code: str | None
    life_s: float | None


class Invites:
    """Makes invites inside the unit of whoever decided that there shall be one."""

    def __init__(self, clock: Clock, ttl: float) -> None:
        """``ttl`` in seconds (key ``identity.invite_ttl``)."""
        self._clock = clock
        self._ttl = ttl

    async def make(self, unit: Unit, person_id: PersonId, name: str) -> Invited:
        """A new one for this person."""
        code = format_code(secrets.token_bytes(CODE_BYTES))
        invite_id = new_id(self._clock.now())
        await unit.of(PersonStore).add_invite(invite_id, person_id, code_hash(code), self._ttl)
        return Invited(person_id, name, code, self._ttl)
