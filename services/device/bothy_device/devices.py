"""A person's devices at a relay: which there are, one more, one less."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from bothy_device.failure import Failure
from bothy_device.rest import Rest
from bothy_wire.printable import printable


class Device(Struct, frozen=True):
    """A device of the person; instants in RFC 3339."""

    device_id: UUID
    name: str
    kind: str
    added_by: str
    fingerprint: str
    created_at: str
    last_used_at: str | None
    revoked_at: str | None


class Invite(Struct, frozen=True):
    """A code for one more device. Without a code it was shown before."""

    name: str
    invite: str | None
    expires_in_s: float | None


class _Devices(Struct, frozen=True):
    devices: list[Device]


async def list_devices(rest: Rest) -> list[Device]:
    """The person's devices, oldest first, with those that are revoked."""
    return (await rest.call("GET", "/devices", _Devices)).devices


async def invite(rest: Rest) -> Invite:
    """A code for one more device, with a fresh proof of this device's key."""
    return await rest.make("/devices/invites", Invite, {"step_up_id": await rest.step_up("manage_account")})


async def revoke(rest: Rest, device_id: UUID) -> Device:
    """End a device and all that runs on it."""
    proof = {"step_up_id": await rest.step_up("manage_account")}
    return await rest.call("POST", f"/devices/{device_id}/revoke", Device, proof)


async def log_out(rest: Rest) -> Device:
    """End this device and all that runs on it."""
    return await rest.call("POST", "/auth/logout", Device, {})


def find_device(devices: Sequence[Device], wanted: str) -> Device:
    """The device with that name, or whose id begins like that. Raises :class:`Failure` for none and for several."""
    live = [each for each in devices if each.revoked_at is None]
    found = [each for each in live if each.name == wanted] or _beginning(live, wanted)
    match found:
        case [device]:
            return device
        case []:
            gone = [each for each in devices if each.name == wanted] or _beginning(devices, wanted)
            why = "is revoked already" if gone else "is none of yours"
            raise Failure(f"{printable(wanted)!r} {why}; bothy devices lists yours")
        case several:
            ids = ", ".join(str(each.device_id) for each in several)
            raise Failure(f"{printable(wanted)!r} means {len(several)} devices, give more of the id of one: {ids}")


def _beginning(devices: Sequence[Device], prefix: str) -> list[Device]:
    return [each for each in devices if prefix and str(each.device_id).startswith(prefix.lower())]
