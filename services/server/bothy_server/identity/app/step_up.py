"""Fresh proof that the person is at the device, bound to one act on one host."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass

from bothy_server.identity.app.holding import hold_caller
from bothy_server.identity.app.passkey_proof import Assertion, PasskeyProof, PasskeyStore
from bothy_server.identity.app.ports import Challenge, ChallengeStore, Method, PersonStore, RightStore
from bothy_server.identity.app.standing import host_unknown, operator_required
from bothy_server.identity.domain.act import Act
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Unit, UnitOfWork
from bothy_wire import signing
from bothy_wire.ids import StepUpId
from bothy_wire.limits import CHALLENGE_BYTES


@dataclass(frozen=True, slots=True)
class StepUpLimits:
    """Lives in seconds: of a challenge for a device's key or for a passkey, and of what was confirmed (keys
    ``identity.challenge_ttl``, ``identity.passkey_challenge_ttl``, ``identity.step_up_window``).
    """

    challenge_ttl: float
    passkey_challenge_ttl: float
    step_up_window: float


@dataclass(frozen=True, slots=True)
class Asked:
    """A challenge and its life in seconds. ``passkeys``: the credentials that may answer it, of a browser only."""

    challenge: bytes
    expires_in_s: float
    passkeys: tuple[bytes, ...]


class StepUp:
    """Challenge, then confirmation; the result is spent by the transaction of the act.

    A device of the command line confirms with its key, a browser with a passkey of its person and with nothing else: its
    key lies where a page's scripts can use it.
    """

    def __init__(
        self, uow: UnitOfWork, clock: Clock, origins: Collection[str], proof: PasskeyProof, limits: StepUpLimits
    ) -> None:
        """``origins``: the audiences that a signature may name."""
        self._uow = uow
        self._clock = clock
        self._origins = origins
        self._proof = proof
        self._limits = limits

    async def challenge(self, caller: Caller, act: Act) -> Asked:
        """A challenge for one act. 401 ``passkey_required`` for a browser whose person has no passkey."""
        if not act.complete:
            raise Problem(422, "step_up_invalid", f"A confirmation of {act.purpose} names other things than these.")
        value = secrets.token_bytes(CHALLENGE_BYTES)
        async with self._uow() as unit:
            await hold_caller(unit, caller)
            await _check_right(unit, caller, act)
            passkeys = await _passkeys_of(unit, caller)
            ttl_s = self._limits.passkey_challenge_ttl if passkeys else self._limits.challenge_ttl
            wanted = Challenge(value, caller.device_id, act)
            if not await unit.of(ChallengeStore).add(new_id(self._clock.now()), wanted, ttl_s):
                raise host_unknown()
        return Asked(value, ttl_s, passkeys)

    async def confirm(self, caller: Caller, challenge: bytes, given: bytes | Assertion) -> tuple[StepUpId, float]:
        """The id of the step-up and its life in seconds. ``given`` is a signature of the device's key or a passkey's answer.

        401 ``step_up_refused`` for anything that does not fit, 401 ``passkey_required`` for a browser that sends a signature.
        """
        refusal = Problem(401, "step_up_refused", "The confirmation is not valid or came too late; try again.")
        method: Method = "passkey" if isinstance(given, Assertion) else "device_key"
        async with self._proof.watched(refusal), self._uow() as unit:
            # A revocation forgets what is confirmed: none may come behind it.
            await hold_caller(unit, caller)
            act = await unit.of(ChallengeStore).use_step_up(challenge, caller.device_id)
            if act is None or not await self._confirmed(unit, caller, challenge, act, given):
                raise refusal
            step_up_id = StepUpId(new_id(self._clock.now()))
            await unit.of(ChallengeStore).add_step_up(
                step_up_id, caller.person_id, caller.device_id, act, method, self._limits.step_up_window
            )
            unit.audit(
                AuditEntry(
                    "step_up.confirm",
                    act.purpose,
                    person_id=caller.person_id,
                    device_id=caller.device_id,
                    host_id=act.host_id,
                )
            )
        return step_up_id, self._limits.step_up_window

    async def _confirmed(
        self, unit: Unit, caller: Caller, challenge: bytes, act: Act, given: bytes | Assertion
    ) -> bool:
        match caller.kind, given:
            case "cli", bytes():
                return await self._signed(unit, caller, challenge, act, given)
            case "browser", Assertion():
                return await self._answered(unit, caller, challenge, given)
            case "browser", bytes():
                raise passkey_required()
            case _:  # a passkey may have answered on another machine: it says nothing about this one
                return False

    async def _signed(self, unit: Unit, caller: Caller, challenge: bytes, act: Act, signature: bytes) -> bool:
        device = await unit.of(PersonStore).device(caller.device_id)
        fields = (challenge, str(caller.device_id), *act.fields())
        purpose = signing.Purpose.DEVICE_STEP_UP
        return device is not None and signing.verify_any(device.signing_key, signature, purpose, self._origins, *fields)

    async def _answered(self, unit: Unit, caller: Caller, challenge: bytes, assertion: Assertion) -> bool:
        proven = await self._proof.check(unit, assertion)
        if proven is None or proven.answered.challenge != challenge or proven.passkey.person_id != caller.person_id:
            return False
        await self._proof.note_use(unit, proven)
        return True


def passkey_required() -> Problem:
    """For a browser without a passkey, or one that offers its key instead."""
    return Problem(
        401, "passkey_required", "This browser confirms with a passkey of yours. Add one first, if you have none."
    )


async def _passkeys_of(unit: Unit, caller: Caller) -> tuple[bytes, ...]:
    if caller.kind == "cli":
        return ()
    passkeys = await unit.of(PasskeyStore).of_person(caller.person_id)
    if not passkeys:
        raise passkey_required()
    return tuple(each.credential_id for each in passkeys)


async def _check_right(unit: Unit, caller: Caller, act: Act) -> None:
    """A challenge is for who may do the act; the act itself asks again."""
    match act.purpose:
        case "manage_account":
            return
        case "manage_relay":
            if not caller.is_operator:
                raise operator_required()
        case "manage_host" if caller.is_operator:
            return
        case "open" | "attach" | "manage_host":
            assert act.host_id is not None
            right = await unit.of(RightStore).right(caller.person_id, act.host_id)
            if right is None or (act.purpose == "manage_host" and not right.owner):
                raise host_unknown()
