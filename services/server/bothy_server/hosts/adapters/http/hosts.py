"""REST of hosts and their pairing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from bothy_server.hosts.app.directory import Directory, Listed
from bothy_server.hosts.app.naming import Naming
from bothy_server.hosts.app.pairing import Pairing
from bothy_server.hosts.app.transitions import Transitions
from bothy_server.hosts.domain.host import HostState
from bothy_server.identity.app.api import Attempts, host_unknown
from bothy_server.platform.operations import AnonymousCall, Call, operation
from bothy_wire.frames import Key, Name, Signature
from bothy_wire.ids import HostId, StepUpId
from bothy_wire.signing import fingerprint


class HostBody(msgspec.Struct, frozen=True, kw_only=True):
    """A host as a person sees it."""

    host_id: UUID
    name: str
    state: str
    disabled_reason: str | None
    presence: Literal["online", "lost", "offline"]
    profiles: dict[str, list[str]]
    channel_key: bytes | None
    fingerprint: str | None
    owner: bool
    session_users: list[str]
    last_seen_at: datetime | None


class HostList(msgspec.Struct, frozen=True):
    """Hosts by name."""

    hosts: list[HostBody]


class HostWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A host to add. ``owner``: a person by id or exact name; the caller when it is left out.

    ``step_up_id`` is of the purpose ``manage_relay``.
    """

    name: Name
    owner: Name | None = None
    step_up_id: UUID


class Confirmed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``step_up_id`` is of the purpose ``manage_host`` and of this host."""

    step_up_id: UUID


class CodeMade(msgspec.Struct, frozen=True):
    """A pairing code; it is shown once. A repeat of the request that made it is answered ``already_issued`` instead."""

    code: str
    expires_in_s: float


class Confirmation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the host's owner read on the machine. ``step_up_id`` is of the purpose ``manage_host`` and of this host."""

    fingerprint: Annotated[str, Meta(min_length=1, max_length=128)]
    step_up_id: UUID


class StateWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a host shall be. ``step_up_id`` is of the purpose ``manage_host`` and of this host."""

    state: Literal["active", "disabled", "retired"]
    step_up_id: UUID


class NameWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a host shall be called. ``step_up_id`` is of the purpose ``manage_host`` and of this host."""

    name: Name
    step_up_id: UUID


class PairWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a host service says of itself."""

    code: Annotated[str, Meta(min_length=1, max_length=128)]
    signing_key: Key
    channel_key: Key
    signature: Signature


class PairMade(msgspec.Struct, frozen=True):
    """What a host service stores."""

    host_id: UUID
    name: str
    state: str
    pairing_seq: int
    join: str


@dataclass(frozen=True, slots=True)
class Hosts:
    """What owners, operators and host services do about hosts."""

    directory: Directory
    pairing: Pairing
    transitions: Transitions
    naming: Naming
    attempts: Attempts

    @operation("GET", "/api/v1/hosts")
    async def list_hosts(self, call: Call[None]) -> HostList:
        """The hosts that the caller may see: with a right on them, or all to an operator."""
        return HostList([_body(each) for each in await self.directory.list(call.caller)])

    @operation("GET", "/api/v1/hosts/{host_id}", refuses={404: ("host_unknown",)})
    async def get_host(self, call: Call[None]) -> HostBody:
        """One host."""
        return _body(await self.directory.get(call.caller, _host_id(call)))

    @operation(
        "POST",
        "/api/v1/hosts",
        201,
        refuses={
            401: ("step_up_required",),
            403: ("operator_required",),
            404: ("person_unknown",),
            409: ("host_exists",),
            422: ("name_invalid",),
        },
        repeatable=True,
    )
    async def create_host(self, call: Call[HostWanted]) -> HostBody:
        """Add a host, and say who owns it. Operators only; whose machine it is decides by pairing it."""
        caller, step_up_id = call.caller, StepUpId(call.body.step_up_id)
        owner = call.body.owner or str(caller.person_id)
        host = await self.pairing.create(call.body.name, owner, caller, step_up_id, call.repeat)
        return _body(await self.directory.get(caller, host.id))

    @operation(
        "POST",
        "/api/v1/hosts/{host_id}/pairing-codes",
        201,
        refuses={401: ("step_up_required",), 404: ("host_unknown",)},
        repeatable=True,
    )
    async def create_pairing_code(self, call: Call[Confirmed]) -> CodeMade:
        """A code to pair a machine with, shown once. A host that is paired loses its keys and its sessions now."""
        step_up_id = StepUpId(call.body.step_up_id)
        made = await self.pairing.issue_code(_host_id(call), call.caller, step_up_id, call.repeat)
        return CodeMade(*made)

    @operation(
        "POST",
        "/api/v1/hosts/{host_id}/confirm",
        refuses={
            401: ("step_up_required",),
            403: ("owner_required",),
            404: ("host_unknown",),
            409: ("host_not_pending", "fingerprint_mismatch"),
        },
    )
    async def confirm_host(self, call: Call[Confirmation]) -> HostBody:
        """As its owner, let a freshly paired host in."""
        body = call.body
        await self.pairing.confirm(call.caller, _host_id(call), body.fingerprint, StepUpId(body.step_up_id))
        return _body(await self.directory.get(call.caller, _host_id(call)))

    @operation(
        "POST",
        "/api/v1/hosts/{host_id}/state",
        refuses={401: ("step_up_required",), 404: ("host_unknown",), 409: ("host_state_conflict",)},
    )
    async def set_host_state(self, call: Call[StateWanted]) -> HostBody:
        """Disable, enable or retire a host. Its sessions end when it is not active any more."""
        state, step_up_id = HostState(call.body.state), StepUpId(call.body.step_up_id)
        await self.transitions.set_state(_host_id(call), state, call.caller, step_up_id)
        return _body(await self.directory.get(call.caller, _host_id(call)))

    @operation(
        "POST",
        "/api/v1/hosts/{host_id}/rename",
        refuses={
            401: ("step_up_required",),
            404: ("host_unknown",),
            409: ("host_exists",),
            422: ("name_invalid",),
        },
    )
    async def rename_host(self, call: Call[NameWanted]) -> HostBody:
        """As an owner or operator, give a host another name. The one that it has changes nothing."""
        await self.naming.rename(_host_id(call), call.body.name, call.caller, StepUpId(call.body.step_up_id))
        return _body(await self.directory.get(call.caller, _host_id(call)))

    @operation(
        "POST",
        "/api/v1/hosts/pair",
        201,
        refuses={401: ("pairing_code_invalid",), 409: ("host_key_exists",)},
    )
    async def pair_host(self, call: AnonymousCall[PairWanted]) -> PairMade:
        """Give a host the keys of the machine that shows its code. Called by the host service."""
        body = call.body
        async with self.attempts.guarding("code", call.address, wrong="pairing_code_invalid"):
            paired = await self.pairing.pair(body.code, body.signing_key, body.channel_key, body.signature)
        host = paired.host
        return PairMade(host.id, host.name, host.state.value, host.pairing_seq, paired.join)


def _host_id(call: Call[Any]) -> HostId:
    return HostId(call.path_id("host_id", host_unknown()))


def _body(listed: Listed) -> HostBody:
    host = listed.host
    return HostBody(
        host_id=host.id,
        name=host.name,
        state=host.state.value,
        disabled_reason=host.disabled_reason,
        presence=listed.presence.value,
        profiles={name: list(users) for name, users in host.profiles.items()},
        channel_key=host.channel_key,
        fingerprint=None if host.channel_key is None else fingerprint(host.channel_key),
        owner=listed.right is not None and listed.right.owner,
        session_users=sorted(listed.right.session_users) if listed.right is not None else [],
        last_seen_at=host.last_seen_at,
    )
