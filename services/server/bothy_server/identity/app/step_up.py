"""Fresh proof that the person is at the device, bound to one act on one host."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass

from bothy_server.identity.app.api import Caller
from bothy_server.identity.app.ports import Challenge, ChallengeStore, PersonStore, Purpose, RightStore
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, UnitOfWork
from bothy_wire import signing
from bothy_wire.ids import HostId, StepUpId
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

    async def challenge(
        self, caller: Caller, purpose: Purpose, host_id: HostId, profile: str, session_user: str
    ) -> tuple[bytes, float]:
        """A challenge for one act and its life in seconds."""
        wanted = Challenge(
            secrets.token_bytes(CHALLENGE_BYTES), caller.device_id, purpose, host_id, profile, session_user
        )
        async with self._uow() as unit:
            right = await unit.of(RightStore).right(caller.person_id, host_id)
            if right is None or not await unit.of(ChallengeStore).add(
                new_id(self._clock.now()), wanted, self._limits.challenge_ttl
            ):
                raise Problem(404, "host_unknown", "There is no such host, or you have no right on it.")
        return wanted.value, self._limits.challenge_ttl

    async def confirm(self, caller: Caller, challenge: bytes, signature: bytes) -> tuple[StepUpId, float]:
        """The id of the step-up and its life in seconds; 401 ``step_up_refused`` for anything that does not fit."""
        async with self._uow() as unit:
            device = await unit.of(PersonStore).device(caller.device_id)
            proof = await unit.of(ChallengeStore).use(challenge, caller.device_id, login=False)
            if device is None or proof is None or not self._signed(device.signing_key, signature, proof):
                raise Problem(401, "step_up_refused", "The confirmation is not valid or came too late; try again.")
            step_up_id = StepUpId(new_id(self._clock.now()))
            await unit.of(ChallengeStore).add_step_up(step_up_id, caller.person_id, proof, self._limits.step_up_window)
            unit.audit(
                AuditEntry(
                    "step_up.confirm",
                    proof.purpose,
                    person_id=caller.person_id,
                    device_id=caller.device_id,
                    host_id=proof.host_id,
                )
            )
        return step_up_id, self._limits.step_up_window

    def _signed(self, key: bytes, signature: bytes, proof: Challenge) -> bool:
        fields = (
            proof.value,
            str(proof.device_id),
            proof.purpose,
            str(proof.host_id),
            proof.profile or "",
            proof.session_user or "",
        )
        return signing.verify_any(key, signature, signing.Purpose.DEVICE_STEP_UP, self._origins, *fields)
