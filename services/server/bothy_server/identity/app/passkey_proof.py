"""Proof by a passkey: whose it is, and that it answered a challenge of this server just now.

The rules of WebAuthn are the port :class:`Authenticators`; the rows are :class:`PasskeyStore`'s. Whoever takes a proof::

    async with proof.watched(refusal), uow() as unit:
        proven = await proof.check(unit, assertion)   # None: nobody's, or not right
        ...                                           # spend the challenge that it answers
        await proof.note_use(unit, proven)
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Unit, UnitOfWork
from bothy_wire.ids import DeviceId, PersonId


@dataclass(frozen=True, slots=True)
class Attestation:
    """What an authenticator made of a new passkey (WebAuthn, 7.1)."""

    credential_id: bytes
    client_data: bytes
    attestation_object: bytes


@dataclass(frozen=True, slots=True)
class Assertion:
    """What an authenticator answered with a passkey (WebAuthn, 7.2). ``user_handle`` is there when nobody named the passkey."""

    credential_id: bytes
    client_data: bytes
    authenticator_data: bytes
    signature: bytes
    user_handle: bytes | None


@dataclass(frozen=True, slots=True)
class Registered:
    """A new passkey that keeps the rules. ``challenge`` is the one that it answers: whether it was ours is not known yet."""

    challenge: bytes
    public_key: bytes
    sign_count: int
    backed_up: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that keeps the rules; ``challenge`` as above."""

    challenge: bytes
    sign_count: int
    backed_up: bool


class Authenticators(Protocol):
    """The rules of WebAuthn: right origin, right relying party, a verified person, a right signature."""

    def registered(self, attestation: Attestation) -> Registered | None:
        """None for what breaks a rule or cannot be read."""

    def answered(self, assertion: Assertion, public_key: bytes | None) -> Answered | None:
        """None for what breaks a rule or cannot be read. Without a public key it is as much work, and None."""


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey as its person sees it."""

    id: UUID
    name: str
    credential_id: bytes
    backed_up: bool
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class KnownPasskey:
    """A passkey with what proves it."""

    id: UUID
    person_id: PersonId
    person_name: str
    public_key: bytes


class PasskeyStore(Protocol):
    """Passkeys of persons."""

    async def add(
        self,
        passkey_id: UUID,
        person_id: PersonId,
        device_id: DeviceId,
        name: str,
        credential_id: bytes,
        new: Registered,
    ) -> bool:
        """False when the credential is known already."""

    async def of_person(self, person_id: PersonId) -> list[Passkey]:
        """Those that were not removed, oldest first."""

    async def get(self, passkey_id: UUID) -> Passkey:
        """One that was added, removed or not."""

    async def hold(self, credential_id: bytes) -> KnownPasskey | None:
        """One that was not removed, of an enabled person; until the unit ends nobody else uses or removes it."""

    async def note_use(self, passkey_id: UUID, sign_count: int, *, backed_up: bool) -> bool:
        """Of one that is held. False when its counter did not grow, though it counts."""

    async def remove(self, passkey_id: UUID, person_id: PersonId) -> bool:
        """False when the person has no such passkey."""

    async def remove_added_with(self, device_id: DeviceId) -> bool:
        """Remove all that this device added. False when there was none."""

    async def came_to_add(self, device_id: DeviceId, window_s: float) -> bool:
        """Whether it is a browser that came by an invite so short a time ago, and has added none."""


@dataclass(frozen=True, slots=True)
class Proven:
    """Who holds the passkey, and what was answered with it."""

    passkey: KnownPasskey
    answered: Answered


class _Copied(Exception):  # noqa: N818 - a state of the passkey
    """The counter of a passkey went back: somebody may have a copy of it."""

    def __init__(self, person_id: PersonId) -> None:
        super().__init__()
        self.person_id = person_id


class PasskeyProof:
    """Takes proofs."""

    def __init__(self, uow: UnitOfWork, authenticators: Authenticators) -> None:
        """``uow`` is for the audit of a copied passkey alone."""
        self._uow = uow
        self._authenticators = authenticators

    async def check(self, unit: Unit, assertion: Assertion) -> Proven | None:
        """An unknown passkey takes as long as a wrong answer. The challenge still has to be spent."""
        known = await unit.of(PasskeyStore).hold(assertion.credential_id)
        answered = self._authenticators.answered(assertion, None if known is None else known.public_key)
        if known is None or answered is None or assertion.user_handle not in (None, known.person_id.bytes):
            return None
        return Proven(known, answered)

    async def note_use(self, unit: Unit, proven: Proven) -> None:
        """After the challenge was spent: an answer that comes twice is no copy of the passkey."""
        answered = proven.answered
        if not await unit.of(PasskeyStore).note_use(
            proven.passkey.id, answered.sign_count, backed_up=answered.backed_up
        ):
            raise _Copied(proven.passkey.person_id)

    @asynccontextmanager
    async def watched(self, refusal: Problem) -> AsyncIterator[None]:
        """Around a unit that takes a proof: a counter that went back is ``refusal``, and audited in a unit of its own."""
        try:
            yield
        except _Copied as copied:
            async with self._uow() as unit:
                unit.audit(AuditEntry("attempt.refused", "passkey_counter", subject_person_id=copied.person_id))
            raise refusal from copied
