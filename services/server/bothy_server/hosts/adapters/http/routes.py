"""REST of hosts and their pairing."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bothy_server.hosts.app.directory import Directory, Listed
from bothy_server.hosts.app.pairing import Pairing, host_unknown
from bothy_server.hosts.app.transitions import Transitions
from bothy_server.hosts.domain.host import HostState
from bothy_server.identity.app.api import Callers
from bothy_server.platform.http import Empty, bearer_token, json_response, path_id, read_json
from bothy_wire.frames import Key, Name, Signature
from bothy_wire.ids import HostId
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
    """Answer of ``GET /hosts``."""

    hosts: list[HostBody]


class HostWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /hosts``."""

    name: Name


class CodeMade(msgspec.Struct, frozen=True):
    """A pairing code; it is shown once."""

    code: str
    expires_in_s: float


class Confirmation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /hosts/{host_id}/confirm``."""

    fingerprint: Annotated[str, Meta(min_length=1, max_length=128)]


class StateWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /hosts/{host_id}/state``."""

    state: Literal["active", "disabled", "retired"]


class PairWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /hosts/pair``."""

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


def routes(
    directory: Directory, pairing: Pairing, transitions: Transitions, callers: Callers, max_body_bytes: int
) -> list[BaseRoute]:
    """The routes of this feature. ``max_body_bytes`` is the key ``server.max_body_bytes``."""

    async def list_hosts(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        return json_response(HostList([_body(each) for each in await directory.list(caller)]))

    async def get_host(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        return json_response(_body(await directory.get(caller, _host_id(request))))

    async def create(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        body = await read_json(request, HostWanted, max_body_bytes)
        host = await pairing.create(body.name, caller.person_id, caller)
        return json_response(_body(await directory.get(caller, host.id)), 201)

    async def issue_code(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        await read_json(request, Empty, max_body_bytes)
        return json_response(CodeMade(*await pairing.issue_code(_host_id(request), caller)), 201)

    async def confirm(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        body = await read_json(request, Confirmation, max_body_bytes)
        await pairing.confirm(caller, _host_id(request), body.fingerprint)
        return json_response(_body(await directory.get(caller, _host_id(request))))

    async def set_state(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        body = await read_json(request, StateWanted, max_body_bytes)
        await transitions.set_state(_host_id(request), HostState(body.state), caller)
        return json_response(_body(await directory.get(caller, _host_id(request))))

    async def pair(request: Request) -> Response:
        body = await read_json(request, PairWanted, max_body_bytes)
        paired = await pairing.pair(body.code, body.signing_key, body.channel_key, body.signature)
        host = paired.host
        return json_response(PairMade(host.id, host.name, host.state.value, host.pairing_seq, paired.join), 201)

    return [
        Route("/api/v1/hosts", list_hosts, methods=["GET"]),
        Route("/api/v1/hosts", create, methods=["POST"]),
        Route("/api/v1/hosts/pair", pair, methods=["POST"]),
        Route("/api/v1/hosts/{host_id}", get_host, methods=["GET"]),
        Route("/api/v1/hosts/{host_id}/pairing-codes", issue_code, methods=["POST"]),
        Route("/api/v1/hosts/{host_id}/confirm", confirm, methods=["POST"]),
        Route("/api/v1/hosts/{host_id}/state", set_state, methods=["POST"]),
    ]


def _host_id(request: Request) -> HostId:
    return HostId(path_id(request, "host_id", host_unknown()))


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
