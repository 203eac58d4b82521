"""REST of passkeys: a person's own, and signing in with one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from bothy_server.identity.adapters.http.webauthn_bodies import (
    Assertion,
    Attestation,
    CreationOptions,
    RequestOptions,
    creation_options,
    request_options,
)
from bothy_server.identity.app import passkey_proof
from bothy_server.identity.app.api import Attempts
from bothy_server.identity.app.passkey_login import Browser, PasskeyLogin
from bothy_server.identity.app.passkeys import NewPasskey, Passkeys
from bothy_server.identity.app.ports import DeviceKeys
from bothy_server.kernel.problems import Problem
from bothy_server.platform.operations import AnonymousCall, Call, Empty, operation
from bothy_wire.frames import Key, Name, Signature
from bothy_wire.ids import StepUpId


class RegisterOptions(msgspec.Struct, frozen=True):
    """What a page hands to ``navigator.credentials.create``."""

    options: CreationOptions
    expires_in_s: float


class LoginOptions(msgspec.Struct, frozen=True):
    """What a page hands to ``navigator.credentials.get``."""

    options: RequestOptions
    expires_in_s: float


class PasskeyWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new passkey, signed by the device's key (``passkey-add``). ``step_up_id`` is of a confirmation ``manage_account``."""

    name: Name
    credential: Attestation
    signature: Signature
    step_up_id: UUID | None = None


class PasskeyBody(msgspec.Struct, frozen=True):
    """A passkey. ``backed_up``: the authenticator's maker keeps a copy for the person's other devices."""

    passkey_id: UUID
    name: str
    backed_up: bool
    created_at: datetime
    last_used_at: datetime | None


class PasskeyList(msgspec.Struct, frozen=True):
    """The caller's passkeys, oldest first."""

    passkeys: list[PasskeyBody]


class PasskeyRemoval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``step_up_id`` is of a confirmation ``manage_account``."""

    step_up_id: UUID


class BrowserKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The browser as a device: its name and its two public keys, signed with the first (``passkey-login``)."""

    name: Name
    signing_key: Key
    channel_key: Key
    signature: Signature


class PasskeyLoginWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A passkey's answer, and the browser that shall be signed in by it."""

    credential: Assertion
    device: BrowserKeys


class PasskeyLoginMade(msgspec.Struct, frozen=True):
    """Whose device the browser is, and its access token."""

    device_id: UUID
    person_id: UUID
    person_name: str
    access_token: str
    expires_in_s: float


@dataclass(frozen=True, slots=True)
class PersonPasskeys:
    """A person's own passkeys, and signing in with one."""

    passkeys: Passkeys
    logins: PasskeyLogin
    attempts: Attempts

    @operation("POST", "/api/v1/passkeys/challenge", 201)
    async def make_passkey_challenge(self, call: Call[Empty]) -> RegisterOptions:
        """What to ask an authenticator for, to add a passkey."""
        wanted = await self.passkeys.challenge(call.caller)
        options = creation_options(
            wanted.challenge, wanted.expires_in_s, wanted.person_id, wanted.person_name, wanted.held
        )
        return RegisterOptions(options, wanted.expires_in_s)

    @operation(
        "POST",
        "/api/v1/passkeys",
        201,
        refuses={
            401: ("step_up_required",),
            409: ("passkey_limit", "passkey_exists"),
            422: ("name_invalid", "passkey_invalid"),
        },
        repeatable=True,
    )
    async def add_passkey(self, call: Call[PasskeyWanted]) -> PasskeyBody:
        """Add a passkey. A browser that an invite let in a moment ago needs no confirmation for its first one."""
        body = call.body
        step_up_id = None if body.step_up_id is None else StepUpId(body.step_up_id)
        new = NewPasskey(body.name, body.credential.given(), body.signature)
        return _body(await self.passkeys.add(call.caller, new, step_up_id, call.repeat))

    @operation("GET", "/api/v1/passkeys")
    async def list_passkeys(self, call: Call[None]) -> PasskeyList:
        """The caller's passkeys."""
        return PasskeyList([_body(each) for each in await self.passkeys.of_caller(call.caller)])

    @operation(
        "POST",
        "/api/v1/passkeys/{passkey_id}/remove",
        refuses={401: ("step_up_required",), 404: ("passkey_unknown",)},
    )
    async def remove_passkey(self, call: Call[PasskeyRemoval]) -> PasskeyList:
        """Remove a passkey; those that are left. Without any no browser of the person confirms or signs in again."""
        unknown = Problem(404, "passkey_unknown", "You have no such passkey.")
        passkey_id = call.path_id("passkey_id", unknown)
        left = await self.passkeys.remove(call.caller, passkey_id, StepUpId(call.body.step_up_id))
        return PasskeyList([_body(each) for each in left])

    @operation("POST", "/api/v1/auth/passkeys/challenge", 201)
    async def make_passkey_login_challenge(self, call: AnonymousCall[Empty]) -> LoginOptions:  # noqa: ARG002 - an operation takes a call
        """What to ask an authenticator for, to sign in with whichever passkey it has."""
        challenge, expires_in_s = await self.logins.challenge()
        return LoginOptions(request_options(challenge, expires_in_s), expires_in_s)

    @operation(
        "POST",
        "/api/v1/auth/passkeys/login",
        201,
        refuses={401: ("login_refused",), 409: ("device_exists",), 422: ("name_invalid",)},
    )
    async def log_in_with_passkey(self, call: AnonymousCall[PasskeyLoginWanted]) -> PasskeyLoginMade:
        """Sign a browser in: as a new device of the passkey's person, or as the one that it was before."""
        device = call.body.device
        browser = Browser(device.name, DeviceKeys(device.signing_key, device.channel_key), device.signature)
        async with self.attempts.guarding("login", call.address, wrong="login_refused"):
            made = await self.logins.login(call.body.credential.given(), browser)
        return PasskeyLoginMade(made.device_id, made.person_id, made.person_name, made.access_token, made.expires_in_s)


def _body(passkey: passkey_proof.Passkey) -> PasskeyBody:
    return PasskeyBody(passkey.id, passkey.name, passkey.backed_up, passkey.created_at, passkey.last_used_at)
