"""REST of step-ups: fresh proof that the person is at the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import msgspec

from bothy_server.identity.adapters.http.webauthn_bodies import Assertion, RequestOptions, request_options
from bothy_server.identity.app import passkey_proof
from bothy_server.identity.app.api import Attempts
from bothy_server.identity.app.step_up import StepUp
from bothy_server.identity.domain.act import Act
from bothy_server.kernel.problems import Problem
from bothy_server.platform.operations import Call, operation
from bothy_wire.frames import Challenge, Name, Signature
from bothy_wire.ids import HostId


class StepUpWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be confirmed. ``open`` and ``attach`` name host, profile and session user, ``manage_host`` the host only."""

    purpose: Literal["open", "attach", "manage_host", "manage_relay", "manage_account"]
    host_id: UUID | None = None
    profile: Name | None = None
    session_user: Name | None = None


class StepUpChallenge(msgspec.Struct, frozen=True, omit_defaults=True):
    """A challenge to sign. A browser gets ``passkey`` too: what it asks a passkey for, with the same challenge."""

    challenge: bytes
    expires_in_s: float
    passkey: RequestOptions | None = None


class StepUpProof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answered challenge: by ``signature`` of a command line's key, by ``credential`` of a browser's passkey."""

    challenge: Challenge
    signature: Signature | None = None
    credential: Assertion | None = None


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
        refuses={
            401: ("passkey_required",),
            403: ("operator_required",),
            404: ("host_unknown",),
            422: ("step_up_invalid",),
        },
    )
    async def make_step_up_challenge(self, call: Call[StepUpWanted]) -> StepUpChallenge:
        """A challenge for one act."""
        body = call.body
        host_id = None if body.host_id is None else HostId(body.host_id)
        act = Act(body.purpose, host_id, body.profile, body.session_user)
        asked = await self.step_up.challenge(call.caller, act)
        passkey = request_options(asked.challenge, asked.expires_in_s, asked.passkeys) if asked.passkeys else None
        return StepUpChallenge(asked.challenge, asked.expires_in_s, passkey)

    @operation(
        "POST",
        "/api/v1/step-up",
        201,
        refuses={401: ("step_up_refused", "passkey_required"), 422: ("step_up_invalid",), 429: ("rate_limited",)},
    )
    async def confirm_step_up(self, call: Call[StepUpProof]) -> StepUpMade:
        """Confirm the act that the challenge was made for."""
        caller, body = call.caller, call.body
        match body.signature, body.credential:
            case bytes() as signature, None:
                given: passkey_proof.Assertion | bytes = signature
            case None, Assertion() as credential:
                given = credential.given()
            case _:
                raise Problem(422, "step_up_invalid", "A confirmation has either a signature or a credential.")
        async with self.attempts.guarding("step_up", caller.person_id, wrong="step_up_refused"):
            return StepUpMade(*await self.step_up.confirm(caller, body.challenge, given))
