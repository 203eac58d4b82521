"""Fresh proof that the person is at the device, bound to one act on one host."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass

from bothy_server.identity.app.ports import Challenge, ChallengeStore, PersonStore, RightStore
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
    """Lives in seconds (keys ``identity.challenge_ttl``, ``identity.step_up_window``)."""

    challenge_ttl: float
    step_up_window: float


class StepUp:
    """Challenge, then confirmation by the device key; the result is spent by the opening transaction."""

    def __init__(self, uow: UnitOfWork, clock: Clock, origins: Collection[str], limits: StepUpLimits) -> None:
        """``origins``: the audiences that a signature may name."""
        self._uow = uow
        self._clock = clock
        self._origins = origins
        self._limits = limits

    async def challenge(self, caller: Caller, act: Act) -> tuple[bytes, float]:
        """A challenge for one act and its life in seconds."""
        if not act.complete:
            raise Problem(422, "step_up_invalid", f"A confirmation of {act.purpose} names other things than these.")
        value = secrets.token_bytes(CHALLENGE_BYTES)
        async with self._uow() as unit:
            await _check_right(unit, caller, act)
            wanted = Challenge(value, caller.device_id, act)
            if not await unit.of(ChallengeStore).add(new_id(self._clock.now()), wanted, self._limits.challenge_ttl):
                raise _host_unknown()
        return value, self._limits.challenge_ttl

    async def confirm(self, caller: Caller, challenge: bytes, signature: bytes) -> tuple[StepUpId, float]:
        """The id of the step-up and its life in seconds; 401 ``step_up_refused`` for anything that does not fit."""
        async with self._uow() as unit:
            device = await unit.of(PersonStore).device(caller.device_id)
            act = await unit.of(ChallengeStore).use_step_up(challenge, caller.device_id)
            if device is None or act is None or not self._signed(device.signing_key, signature, challenge, caller, act):
                raise Problem(401, "step_up_refused", "The confirmation is not valid or came too late; try again.")
            step_up_id = StepUpId(new_id(self._clock.now()))
            await unit.of(ChallengeStore).add_step_up(
                step_up_id, caller.person_id, caller.device_id, act, "device_key", self._limits.step_up_window
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

    def _signed(self, key: bytes, signature: bytes, challenge: bytes, caller: Caller, act: Act) -> bool:
        fields = (challenge, str(caller.device_id), *act.fields())
        return signing.verify_any(key, signature, signing.Purpose.DEVICE_STEP_UP, self._origins, *fields)


async def _check_right(unit: Unit, caller: Caller, act: Act) -> None:
    """A challenge is for who may do the act; the act itself asks again."""
    match act.purpose:
        case "manage_account":
            return
        case "manage_relay":
            if not caller.is_operator:
                raise Problem(403, "operator_required", "Only an operator may do this.")
        case "manage_host" if caller.is_operator:
            return
        case "open" | "attach" | "manage_host":
            assert act.host_id is not None
            right = await unit.of(RightStore).right(caller.person_id, act.host_id)
            if right is None or (act.purpose == "manage_host" and not right.owner):
                raise _host_unknown()


def _host_unknown() -> Problem:
    return Problem(404, "host_unknown", "There is no such host, or you have no right on it.")
