"""Failed attempts, counted in rows: the same count on every node, and never held against who is right.

An attempt with a key or a long code is judged first. Only one that fails is counted, and only a failed one is ever refused
for being one too many: so nobody is locked out by what others tried in their name. A short code could be found by trying,
so there each attempt is counted before it is judged, against the person who tries; and so is each login that has to wait
for approval, against the network that begins it, since all share the room for those (``docs/spec/protocol.md``, Limits).
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Literal, Protocol
from uuid import UUID

from bothy_server.kernel.problems import Problem, too_often
from bothy_server.kernel.rates import Rate, take
from bothy_server.kernel.unit import AuditEntry, UnitOfWork

AttemptKind = Literal["login", "step_up", "user_code", "code", "device_login", "person"]
"""What is tried: a device's key, a person's confirmation, a code that a person types, the code of an invite or pairing, and
to be let in by another device."""

_COUNTED_FIRST = frozenset({"user_code", "device_login"})
_AUDITED = "audited"


class AttemptStore(Protocol):
    """For each kind and subject the instant at which its allowance is whole again."""

    async def lock(self, kind: str, subject: bytes) -> tuple[datetime, datetime]:
        """That instant, and the present one; nobody else counts this subject until the unit ends."""

    async def write(self, kind: str, subject: bytes, whole_at: datetime) -> None:
        """What :meth:`lock` answers from now on."""

    async def prune(self) -> int:
        """Forget whose allowance is whole; how many rows."""


class Attempts:
    """Turns the refusal of a failed attempt into 429 ``rate_limited`` where too many failed."""

    def __init__(self, uow: UnitOfWork, rate: Rate) -> None:
        """``rate`` is the key ``identity.attempt_rate``."""
        self._uow = uow
        self._rate = rate

    @asynccontextmanager
    async def guarding(self, kind: AttemptKind, subject: UUID | str, *, wrong: str) -> AsyncIterator[None]:
        """Around a whole unit that raises a problem with the code ``wrong`` for an attempt that failed.

        ``subject`` is what is guessed at or who guesses; it need not exist. The count has a unit of its own, since that of
        a failed attempt rolls back.
        """
        if kind in _COUNTED_FIRST:
            await self._count(kind, subject)
        try:
            yield
        except Problem as refusal:
            if refusal.code == wrong and kind not in _COUNTED_FIRST:
                await self._count(kind, subject)
            raise

    async def _count(self, kind: AttemptKind, subject: UUID | str) -> None:
        hashed = hashlib.sha256(str(subject).encode()).digest()
        async with self._uow() as unit:
            store = unit.of(AttemptStore)
            wait_s = await _take(store, kind, hashed, self._rate)
            if wait_s and not await _take(store, f"{kind}.{_AUDITED}", hashed, Rate(1, self._rate.period_s)):
                unit.audit(_entry(kind, subject))
        if wait_s:
            raise too_often(wait_s)


async def _take(store: AttemptStore, kind: str, subject: bytes, rate: Rate) -> float:
    whole_at, now = await store.lock(kind, subject)
    taken = take((whole_at - now).total_seconds(), 0, rate)
    if not taken.wait_s:
        await store.write(kind, subject, now + timedelta(seconds=taken.whole_at))
    return taken.wait_s


def _entry(kind: AttemptKind, subject: UUID | str) -> AuditEntry:
    """An address is not written down: the log names persons and devices only."""
    match kind, subject:
        case "login", UUID():
            return AuditEntry("attempt.refused", kind, subject_device_id=subject)
        case _, UUID():
            return AuditEntry("attempt.refused", kind, subject_person_id=subject)
        case _:
            return AuditEntry("attempt.refused", kind)
