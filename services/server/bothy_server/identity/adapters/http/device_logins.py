"""REST of devices that ask to be let in by another one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from bothy_server.identity.app.attempts import Attempts
from bothy_server.identity.app.device_logins import Asking, DeviceLogins
from bothy_server.kernel.problems import Problem
from bothy_server.platform.operations import AnonymousCall, Call, Empty, operation
from bothy_wire.frames import Key, Name, Signature
from bothy_wire.ids import StepUpId
from bothy_wire.signing import fingerprint

Code = Annotated[str, Meta(min_length=1, max_length=128)]


class DeviceAsking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a new device says of itself; the signature is over keys and name."""

    name: Name
    signing_key: Key
    channel_key: Key
    signature: Signature


class DeviceLoginBegun(msgspec.Struct, frozen=True, kw_only=True):
    """``device_code`` stays on the device, ``user_code`` is shown to its person. Ask every ``interval_s`` seconds."""

    device_code: str
    user_code: str
    expires_in_s: float
    interval_s: float


class DeviceLoginPoll(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The code that the device kept."""

    device_code: Code


class DeviceLoginState(msgspec.Struct, frozen=True, kw_only=True):
    """Who the device belongs to, once it was approved."""

    state: Literal["waiting", "approved"]
    device_id: UUID | None = None
    person_id: UUID | None = None
    person_name: str | None = None


class UserCode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The code that the new device shows, as the person typed it."""

    user_code: Code


class WaitingDevice(msgspec.Struct, frozen=True, kw_only=True):
    """What asks to be let in. The device shows the same fingerprint, of its channel key."""

    device_login_id: UUID
    name: str
    fingerprint: str
    expires_at: datetime


class Approval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``step_up_id`` is of the purpose ``manage_account``."""

    step_up_id: UUID


class ApprovedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """The device that the person has now."""

    device_id: UUID


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """It is sent away the next time it asks."""

    device_login_id: UUID


_UNKNOWN = {404: ("user_code_unknown",)}


@dataclass(frozen=True, slots=True)
class DeviceLoginOperations:
    """Of the device that asks, and of the person who decides."""

    device_logins: DeviceLogins
    attempts: Attempts

    @operation(
        "POST",
        "/api/v1/auth/device-logins",
        201,
        refuses={
            401: ("device_login_invalid",),
            409: ("device_exists",),
            422: ("name_invalid",),
            429: ("device_login_limit",),
        },
    )
    async def begin_device_login(self, call: AnonymousCall[DeviceAsking]) -> DeviceLoginBegun:
        """Ask to be let in: the person types the user code on a device where they are signed in."""
        body = call.body
        asking = Asking(body.name, body.signing_key, body.channel_key, body.signature)
        async with self.attempts.guarding("device_login", call.address, wrong="device_login_invalid"):
            begun = await self.device_logins.begin(asking)
        return DeviceLoginBegun(
            device_code=begun.device_code,
            user_code=begun.user_code,
            expires_in_s=begun.expires_in_s,
            interval_s=begun.interval_s,
        )

    @operation(
        "POST",
        "/api/v1/auth/device-logins/poll",
        refuses={401: ("device_login_invalid",), 403: ("device_login_denied",), 429: ("slow_down",)},
    )
    async def poll_device_login(self, call: AnonymousCall[DeviceLoginPoll]) -> DeviceLoginState:
        """Ask whether somebody let the device in. Told again when asked again."""
        let_in = await self.device_logins.poll(call.body.device_code)
        if let_in is None:
            return DeviceLoginState(state="waiting")
        return DeviceLoginState(
            state="approved",
            device_id=let_in.device_id,
            person_id=let_in.person_id,
            person_name=let_in.person_name,
        )

    @operation("POST", "/api/v1/device-logins/find", refuses={**_UNKNOWN, 429: ("rate_limited",)})
    async def find_device_login(self, call: Call[UserCode]) -> WaitingDevice:
        """What asks to be let in with this code."""
        found = await self.device_logins.find(call.caller, call.body.user_code)
        return WaitingDevice(
            device_login_id=found.id,
            name=found.name,
            fingerprint=fingerprint(found.channel_key),
            expires_at=found.expires_at,
        )

    @operation(
        "POST",
        "/api/v1/device-logins/{device_login_id}/approve",
        refuses={401: ("step_up_required",), **_UNKNOWN},
        repeatable=True,
    )
    async def approve_device_login(self, call: Call[Approval]) -> ApprovedDevice:
        """Make it a device of the caller's."""
        login_id = call.path_id("device_login_id", _unknown())
        made = await self.device_logins.approve(call.caller, login_id, StepUpId(call.body.step_up_id), call.repeat)
        return ApprovedDevice(device_id=made)

    @operation("POST", "/api/v1/device-logins/{device_login_id}/deny", refuses=_UNKNOWN)
    async def deny_device_login(self, call: Call[Empty]) -> Denied:
        """Send it away."""
        login_id = call.path_id("device_login_id", _unknown())
        await self.device_logins.deny(call.caller, login_id)
        return Denied(device_login_id=login_id)


def _unknown() -> Problem:
    return Problem(404, "user_code_unknown", "No device waits with this code.")
