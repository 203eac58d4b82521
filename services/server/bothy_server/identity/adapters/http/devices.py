"""REST of one's own account and devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from bothy_server.identity.app.devices import Devices, KnownDevice, device_unknown
from bothy_server.identity.app.invites import Invited
from bothy_server.platform.operations import Call, Empty, operation
from bothy_wire.codes import ALREADY_ISSUED
from bothy_wire.ids import DeviceId, StepUpId
from bothy_wire.signing import fingerprint


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Who is signed in, and where."""

    person_id: UUID
    person_name: str
    is_operator: bool
    device_id: UUID
    device_name: str
    kind: Literal["cli", "browser"]


class DeviceBody(msgspec.Struct, frozen=True, kw_only=True):
    """A device. ``fingerprint`` is of its channel key, as a host's ``authorized_devices`` names it."""

    device_id: UUID
    person_id: UUID
    name: str
    kind: Literal["cli", "browser"]
    added_by: Literal["invite", "passkey", "approval"]
    fingerprint: str
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class DeviceList(msgspec.Struct, frozen=True):
    """Devices, oldest first, with those that are revoked."""

    devices: list[DeviceBody]


class InviteMade(msgspec.Struct, frozen=True, kw_only=True):
    """An invite, shown once: in a repeat it and its life are null, and ``code`` is ``already_issued``."""

    person_id: UUID
    name: str
    invite: str | None
    expires_in_s: float | None
    code: Literal["already_issued"] | None


class DeviceInviteWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``step_up_id`` is of the purpose ``manage_account``."""

    step_up_id: UUID


class RevokeWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``step_up_id`` is of the purpose ``manage_account``; of ``manage_relay`` for somebody else's device."""

    step_up_id: UUID


@dataclass(frozen=True, slots=True)
class OwnDevices:
    """What a person does about the own devices, and an operator about anybody's."""

    devices: Devices

    @operation("GET", "/api/v1/me")
    async def get_me(self, call: Call[None]) -> Me:
        """Who is signed in, and where."""
        own = await self.devices.own(call.caller)
        return Me(
            person_id=own.person_id,
            person_name=own.person_name,
            is_operator=own.is_operator,
            device_id=own.id,
            device_name=own.name,
            kind=own.kind,
        )

    @operation("GET", "/api/v1/devices")
    async def list_devices(self, call: Call[None]) -> DeviceList:
        """The caller's devices."""
        return device_list(await self.devices.list(call.caller, call.caller.person_id))

    @operation("POST", "/api/v1/devices/invites", 201, refuses={401: ("step_up_required",)}, repeatable=True)
    async def invite_device(self, call: Call[DeviceInviteWanted]) -> InviteMade:
        """An invite for one more device of the caller."""
        return invite_made(await self.devices.invite(call.caller, StepUpId(call.body.step_up_id), call.repeat))

    @operation(
        "POST",
        "/api/v1/devices/{device_id}/revoke",
        refuses={401: ("step_up_required",), 404: ("device_unknown",)},
    )
    async def revoke_device(self, call: Call[RevokeWanted]) -> DeviceBody:
        """End a device and all that runs on it, at once and everywhere; an operator may end anybody's."""
        device_id = DeviceId(call.path_id("device_id", device_unknown()))
        return _body(await self.devices.revoke(device_id, call.caller, StepUpId(call.body.step_up_id)))

    @operation("POST", "/api/v1/auth/logout")
    async def log_out(self, call: Call[Empty]) -> DeviceBody:
        """Revoke the device that calls."""
        return _body(await self.devices.log_out(call.caller))


def device_list(found: Sequence[KnownDevice]) -> DeviceList:
    """As a body."""
    return DeviceList([_body(each) for each in found])


def invite_made(invited: Invited) -> InviteMade:
    """As a body."""
    return InviteMade(
        person_id=invited.person_id,
        name=invited.name,
        invite=invited.code,
        expires_in_s=invited.life_s,
        code=None if invited.code else ALREADY_ISSUED,
    )


def _body(device: KnownDevice) -> DeviceBody:
    return DeviceBody(
        device_id=device.id,
        person_id=device.person_id,
        name=device.name,
        kind=device.kind,
        added_by=device.added_by,
        fingerprint=fingerprint(device.channel_key),
        created_at=device.created_at,
        last_used_at=device.last_used_at,
        revoked_at=device.revoked_at,
    )
