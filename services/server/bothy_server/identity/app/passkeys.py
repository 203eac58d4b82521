"""A person's passkeys: adding, listing, removing."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from bothy_server.identity.app.api import hold_caller, spend_step_up
from bothy_server.identity.app.passkey_proof import Attestation, Authenticators, Passkey, PasskeyStore
from bothy_server.identity.app.ports import Challenge, ChallengeStore, PersonStore
from bothy_server.identity.app.repeats import Made, made_before, remember_made
from bothy_server.identity.domain.act import Act
from bothy_server.kernel.caller import Caller, RepeatKey
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.names import check_name
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Unit, UnitOfWork
from bothy_wire.ids import PersonId, StepUpId
from bothy_wire.limits import CHALLENGE_BYTES
from bothy_wire.signing import Purpose, verify_any

_ACT = Act("manage_account")


@dataclass(frozen=True, slots=True)
class PasskeyLimits:
    """Times in seconds, ``most`` for each person (keys ``identity.passkey_challenge_ttl``, ``identity.first_passkey_window``,
    ``identity.max_passkeys``).
    """

    challenge_ttl: float
    first_window: float
    most: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an authenticator is asked for: a passkey of this person, which it does not hold yet. ``expires_in_s``: seconds."""

    challenge: bytes
    person_id: PersonId
    person_name: str
    held: tuple[bytes, ...]
    expires_in_s: float


@dataclass(frozen=True, slots=True)
class NewPasskey:
    """A passkey to be added. The signature is by the key of the device that adds it: an access token alone adds none."""

    name: str
    attestation: Attestation
    signature: bytes


class Passkeys:
    """Use cases of a signed-in person."""

    def __init__(
        self,
        uow: UnitOfWork,
        clock: Clock,
        origins: Collection[str],
        authenticators: Authenticators,
        limits: PasskeyLimits,
    ) -> None:
        """``origins``: the audiences that a signature may name; ``authenticators`` knows the rules of WebAuthn."""
        self._uow = uow
        self._clock = clock
        self._origins = origins
        self._authenticators = authenticators
        self._limits = limits

    async def challenge(self, caller: Caller) -> Wanted:
        """What to ask the authenticator for. Whether the person may add a passkey is asked when it comes."""
        value = secrets.token_bytes(CHALLENGE_BYTES)
        async with self._uow() as unit:
            device = await unit.of(PersonStore).device(caller.device_id)
            assert device is not None
            held = await unit.of(PasskeyStore).of_person(caller.person_id)
            wanted = Challenge(value, caller.device_id, "passkey_register")
            await unit.of(ChallengeStore).add(new_id(self._clock.now()), wanted, self._limits.challenge_ttl)
        known = tuple(each.credential_id for each in held)
        return Wanted(value, caller.person_id, device.person_name, known, self._limits.challenge_ttl)

    async def add(
        self, caller: Caller, wanted: NewPasskey, step_up_id: StepUpId | None, repeat: RepeatKey | None = None
    ) -> Passkey:
        """Add a passkey. A browser that an invite just let in needs no step-up for its first one: it could make none."""
        check_name(wanted.name)
        async with self._uow() as unit:
            made = await made_before(unit, caller, repeat)
            if made is not None:
                return await unit.of(PasskeyStore).get(made.id)
            store = unit.of(PasskeyStore)
            device = await unit.of(PersonStore).hold_device(caller.device_id)
            if device is None or not device.usable:
                raise Problem(401, "token_invalid", "This device was revoked, or its person disabled.")
            new = self._authenticators.registered(wanted.attestation)
            if (
                new is None
                or not self._signed(device.signing_key, new.challenge, wanted)
                or not await unit.of(ChallengeStore).use(new.challenge, caller.device_id, "passkey_register")
            ):
                raise Problem(422, "passkey_invalid", "The passkey is not valid here or came too late; try again.")
            if len(await store.of_person(caller.person_id)) >= self._limits.most:
                raise Problem(409, "passkey_limit", f"You have {self._limits.most} passkeys. Remove one first.")
            await self._check_right(unit, caller, step_up_id)
            passkey_id = new_id(self._clock.now())
            if not await store.add(
                passkey_id, caller.person_id, caller.device_id, wanted.name, wanted.attestation.credential_id, new
            ):
                raise Problem(409, "passkey_exists", "This passkey was added before.")
            unit.audit(AuditEntry("passkey.add", "added", person_id=caller.person_id, device_id=caller.device_id))
            await remember_made(unit, caller, repeat, Made(passkey_id))
            return await store.get(passkey_id)

    async def of_caller(self, caller: Caller) -> list[Passkey]:
        """The caller's passkeys, oldest first."""
        async with self._uow() as unit:
            return await unit.of(PasskeyStore).of_person(caller.person_id)

    async def remove(self, caller: Caller, passkey_id: UUID, step_up_id: StepUpId) -> list[Passkey]:
        """Remove a passkey, and say which are left. Without any, no browser of the person confirms or signs in again.

        A browser that it signed in stays so until that login is over or the device is revoked.
        """
        async with self._uow() as unit:
            await hold_caller(unit, caller)
            if not await unit.of(PasskeyStore).remove(passkey_id, caller.person_id):
                raise Problem(404, "passkey_unknown", "You have no such passkey.")
            await spend_step_up(unit, caller, step_up_id, _ACT)
            unit.audit(AuditEntry("passkey.remove", "removed", person_id=caller.person_id, device_id=caller.device_id))
            return await unit.of(PasskeyStore).of_person(caller.person_id)

    def _signed(self, key: bytes, challenge: bytes, wanted: NewPasskey) -> bool:
        made = hashlib.sha256(wanted.attestation.attestation_object).digest()
        return verify_any(key, wanted.signature, Purpose.PASSKEY_ADD, self._origins, challenge, made, wanted.name)

    async def _check_right(self, unit: Unit, caller: Caller, step_up_id: StepUpId | None) -> None:
        if step_up_id is None and await unit.of(PasskeyStore).came_to_add(caller.device_id, self._limits.first_window):
            return
        await spend_step_up(unit, caller, step_up_id, _ACT)
