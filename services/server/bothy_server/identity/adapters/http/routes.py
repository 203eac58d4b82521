"""REST of login and step-up, and the published keys."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bothy_server.identity.app.api import Callers, Tokens
from bothy_server.identity.app.login import Login, NewDevice
from bothy_server.identity.app.step_up import StepUp
from bothy_server.platform.http import bearer_token, json_response, read_json
from bothy_wire.frames import Challenge, Key, Name, Signature
from bothy_wire.ids import DeviceId, HostId

Code = Annotated[str, Meta(min_length=1, max_length=128)]


class Redeem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /auth/invites/redeem``."""

    code: Code
    name: Name
    signing_key: Key
    channel_key: Key
    signature: Signature


class Redeemed(msgspec.Struct, frozen=True):
    """Who the device belongs to."""

    device_id: UUID
    person_id: UUID
    person_name: str


class ChallengeWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /auth/challenge``."""

    device_id: UUID


class ChallengeMade(msgspec.Struct, frozen=True):
    """A challenge to sign."""

    challenge: bytes
    expires_in_s: float


class TokenWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /auth/token``."""

    device_id: UUID
    challenge: Challenge
    signature: Signature


class TokenMade(msgspec.Struct, frozen=True):
    """An access token."""

    access_token: str
    expires_in_s: float


class StepUpWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /step-up/challenges``."""

    purpose: Literal["open", "attach"]
    host_id: UUID
    profile: Name
    session_user: Name


class StepUpProof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /step-up``."""

    challenge: Challenge
    signature: Signature


class StepUpMade(msgspec.Struct, frozen=True):
    """A confirmation, to be used once."""

    step_up_id: UUID
    expires_in_s: float


def routes(login: Login, step_up: StepUp, tokens: Tokens, callers: Callers, max_body_bytes: int) -> list[BaseRoute]:
    """The routes of this feature. ``max_body_bytes`` is the key ``server.max_body_bytes``."""

    async def redeem(request: Request) -> Response:
        body = await read_json(request, Redeem, max_body_bytes)
        new = NewDevice(body.code, body.name, body.signing_key, body.channel_key, body.signature)
        made = await login.redeem(new)
        return json_response(Redeemed(made.device_id, made.person_id, made.person_name), 201)

    async def challenge(request: Request) -> Response:
        body = await read_json(request, ChallengeWanted, max_body_bytes)
        return json_response(ChallengeMade(*await login.challenge(DeviceId(body.device_id))))

    async def token(request: Request) -> Response:
        body = await read_json(request, TokenWanted, max_body_bytes)
        made = await login.token(DeviceId(body.device_id), body.challenge, body.signature)
        return json_response(TokenMade(*made))

    async def step_up_challenge(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        body = await read_json(request, StepUpWanted, max_body_bytes)
        host_id = HostId(body.host_id)
        made = await step_up.challenge(caller, body.purpose, host_id, body.profile, body.session_user)
        return json_response(ChallengeMade(*made), 201)

    async def step_up_confirm(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        body = await read_json(request, StepUpProof, max_body_bytes)
        return json_response(StepUpMade(*await step_up.confirm(caller, body.challenge, body.signature)), 201)

    async def jwks(_request: Request) -> Response:
        return JSONResponse(tokens.jwks(), headers={"Cache-Control": "max-age=60"})

    return [
        Route("/api/v1/auth/invites/redeem", redeem, methods=["POST"]),
        Route("/api/v1/auth/challenge", challenge, methods=["POST"]),
        Route("/api/v1/auth/token", token, methods=["POST"]),
        Route("/api/v1/step-up/challenges", step_up_challenge, methods=["POST"]),
        Route("/api/v1/step-up", step_up_confirm, methods=["POST"]),
        Route("/.well-known/jwks.json", jwks, methods=["GET"]),
    ]
