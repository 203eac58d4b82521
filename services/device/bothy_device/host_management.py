"""What owners and operators ask the relay about hosts: adding, naming, pairing, states, owners and grants."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeVar
from uuid import UUID

from msgspec import Struct

from bothy_device.choice import find_host
from bothy_device.failure import Failure
from bothy_device.rest import Host, Rest
from bothy_wire.codes import ALREADY_ISSUED

T = TypeVar("T")


class Owner(Struct, frozen=True):
    """A person who owns a host; ``since`` in RFC 3339."""

    person_id: UUID
    person_name: str
    since: str
    disabled: bool


class Grant(Struct, frozen=True):
    """A person may open terminals as one user; instants in RFC 3339."""

    person_id: UUID
    person_name: str
    session_user: str
    since: str
    expires_at: str | None


class PairingCode(Struct, frozen=True):
    """To be used once."""

    code: str
    expires_in_s: float


class _Owners(Struct, frozen=True):
    owners: list[Owner]


class _Grants(Struct, frozen=True):
    grants: list[Grant]


class _Nothing(Struct, frozen=True):
    pass


async def named(rest: Rest, host: str) -> Host:
    """The host with this name or id. Raises :class:`Failure`."""
    return find_host(await rest.hosts(), host)


async def add(rest: Rest, name: str, owner: str | None) -> Host:
    """A new host; without ``owner`` the caller's own."""
    body = {"name": name, "step_up_id": await rest.step_up("manage_relay")}
    return await rest.make("/hosts", Host, body if owner is None else body | {"owner": owner})


async def pairing_code(rest: Rest, host: Host) -> PairingCode:
    """A code for a machine. A host that is paired loses its keys and its sessions by it."""
    body = {"step_up_id": await rest.step_up("manage_host", host.host_id)}
    made = await rest.make(f"/hosts/{host.host_id}/pairing-codes", PairingCode, body)
    if made.code == ALREADY_ISSUED:
        raise Failure("the relay has shown this code before, and the answer was lost; run bothy hosts code")
    return made


async def set_state(rest: Rest, host: Host, state: Literal["active", "disabled", "retired"]) -> Host:
    """Bring a host there."""
    return await _act(rest, host, "/state", Host, state=state)


async def rename(rest: Rest, host: Host, name: str) -> Host:
    """Give a host another name."""
    return await _act(rest, host, "/rename", Host, name=name)


async def owners(rest: Rest, host: Host) -> list[Owner]:
    """By name."""
    return (await rest.call("GET", f"/hosts/{host.host_id}/owners", _Owners)).owners


async def add_owner(rest: Rest, host: Host, person: str) -> Owner:
    """``person`` is a name or an id."""
    return await _act(rest, host, "/owners", Owner, person=person)


async def remove_owner(rest: Rest, host: Host, person: str) -> None:
    """``person`` is a name or an id."""
    await _act(rest, host, "/owners/remove", _Nothing, person=person)


async def grants(rest: Rest, host: Host) -> list[Grant]:
    """Those that count now."""
    return (await rest.call("GET", f"/hosts/{host.host_id}/grants", _Grants)).grants


async def grant(rest: Rest, host: Host, person: str, user: str, until: datetime | None) -> Grant:
    """Let ``person``, a name or an id, open terminals as ``user``; once more, with another end."""
    return await _act(rest, host, "/grants", Grant, person=person, session_user=user, expires_at=until)


async def revoke_grant(rest: Rest, host: Host, person: str, user: str | None) -> None:
    """Take a grant, or all that ``person`` has on the host."""
    await _act(rest, host, "/grants/revoke", _Nothing, person=person, session_user=user)


async def _act(rest: Rest, host: Host, path: str, answer: type[T], **body: Any) -> T:
    """An act that is the same when it is done twice, with a fresh proof of this device's key."""
    body["step_up_id"] = await rest.step_up("manage_host", host.host_id)
    return await rest.call("POST", f"/hosts/{host.host_id}{path}", answer, body)
