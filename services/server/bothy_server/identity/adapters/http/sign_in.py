"""REST of signing in: invites, login by device key, and the published keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from bothy_server.identity.app.api import Attempts, Tokens
from bothy_server.identity.app.login import Login, NewDevice
from bothy_server.platform.operations import AnonymousCall, operation
from bothy_wire.frames import Challenge, Key, Name, Signature
from bothy_wire.ids import DeviceId

Code = Annotated[str, Meta(min_length=1, max_length=128)]


class Redeem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /auth/invites/redeem``. ``kind`` is signed when it is ``browser``."""

    code: Code
    name: Name
    signing_key: Key
    channel_key: Key
    signature: Signature
    kind: Literal["cli", "browser"] = "cli"


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


class Jwks(msgspec.Struct, frozen=True):
    """A JWK set (RFC 7517): the public keys that verify the server's tokens."""

    keys: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SignIn:
    """What a device needs before it has an access token."""

    login: Login
    tokens: Tokens
    attempts: Attempts

    @operation(
        "POST",
        "/api/v1/auth/invites/redeem",
        201,
        refuses={401: ("invite_invalid",), 409: ("device_exists",), 422: ("name_invalid",)},
    )
    async def redeem_invite(self, call: AnonymousCall[Redeem]) -> Redeemed:
        """Add a device of the person that an invite is for."""
        body = call.body
        new = NewDevice(body.code, body.name, body.signing_key, body.channel_key, body.signature, body.kind)
        async with self.attempts.guarding("code", call.address, wrong="invite_invalid"):
            made = await self.login.redeem(new)
        return Redeemed(made.device_id, made.person_id, made.person_name)

    @operation("POST", "/api/v1/auth/challenge")
    async def make_login_challenge(self, call: AnonymousCall[ChallengeWanted]) -> ChallengeMade:
        """A challenge for a device to sign. A device that does not exist gets one too."""
        return ChallengeMade(*await self.login.challenge(DeviceId(call.body.device_id)))

    @operation(
        "POST",
        "/api/v1/auth/token",
        refuses={401: ("login_refused", "device_revoked", "person_disabled", "sign_in_required")},
    )
    async def make_access_token(self, call: AnonymousCall[TokenWanted]) -> TokenMade:
        """An access token, for a signed challenge. So it is made anew, too: there is no refresh token to steal."""
        body = call.body
        device_id = DeviceId(body.device_id)
        async with self.attempts.guarding("login", device_id, wrong="login_refused"):
            return TokenMade(*await self.login.token(device_id, body.challenge, body.signature))

    @operation("GET", "/.well-known/jwks.json", max_age_s=60)
    async def list_keys(self, call: AnonymousCall[None]) -> Jwks:  # noqa: ARG002 - an operation takes a call
        """The server's public signing keys, also those that will sign soon."""
        return Jwks(**self.tokens.jwks())
