"""REST of step-ups: fresh proof that the person is at the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import msgspec

from bothy_server.identity.app.api import Attempts
from bothy_server.identity.app.step_up import StepUp
from bothy_server.identity.domain.act import Act
from bothy_server.platform.operations import Call, operation
from bothy_wire.frames import Challenge, Name, Signature
from bothy_wire.ids import HostId


class StepUpWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be confirmed. ``open`` and ``attach`` name host, profile and session user, ``manage_host`` the host only."""

    purpose: Literal["open", "attach", "manage_host", "manage_relay", "manage_account"]
    host_id: UUID | None = None
    profile: Name | None = None
    session_user: Name | None = None


class StepUpChallenge(msgspec.Struct, frozen=True):
    """A challenge to sign."""

    challenge: bytes
    expires_in_s: float


class StepUpProof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The signature of a device's key over a challenge."""

    challenge: Challenge
    signature: Signature


class StepUpMade(msgspec.Struct, frozen=True):
    """A confirmation, to be used once."""

    step_up_id: UUID
    expires_in_s: float


@dataclass(frozen=True, slots=True)
class StepUps:
    """Challenge and confirmation."""

    step_up: StepUp
    attempts: Attempts

    @operation(
        "POST",
        "/api/v1/step-up/challenges",
        201,
        refuses={403: ("operator_required",), 404: ("host_unknown",), 422: ("step_up_invalid",)},
    )
    async def make_step_up_challenge(self, call: Call[StepUpWanted]) -> StepUpChallenge:
        """A challenge for one act."""
        body = call.body
        host_id = None if body.host_id is None else HostId(body.host_id)
        act = Act(body.purpose, host_id, body.profile, body.session_user)
        return StepUpChallenge(*await self.step_up.challenge(call.caller, act))

    @operation("POST", "/api/v1/step-up", 201, refuses={401: ("step_up_refused",), 429: ("rate_limited",)})
    async def confirm_step_up(self, call: Call[StepUpProof]) -> StepUpMade:
        """Confirm the act that the challenge was made for."""
        caller, body = call.caller, call.body
        async with self.attempts.guarding("step_up", caller.person_id, wrong="step_up_refused"):
            return StepUpMade(*await self.step_up.confirm(caller, body.challenge, body.signature))
