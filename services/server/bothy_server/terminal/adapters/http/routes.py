"""REST of terminal sessions, and the answer that proves the edge's routing rule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bothy_server.hosts.app.api import host_unknown
from bothy_server.identity.app.api import Callers
from bothy_server.kernel.problems import Problem
from bothy_server.platform.http import Empty, bearer_token, json_response, path_id, problem_response, read_json
from bothy_server.terminal.app.open_session import Opened, Sessions, session_unknown
from bothy_server.terminal.app.owner_sessions import OwnerSessions
from bothy_server.terminal.app.ports import SessionView
from bothy_wire.frames import Name
from bothy_wire.ids import HostId, NodeId, SessionId, StepUpId
from bothy_wire.limits import stream_path


class OpenWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /terminal/sessions``."""

    host_id: UUID
    profile: Name
    session_user: Name
    step_up_id: UUID


class AttachWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /terminal/sessions/{session_id}/attach``."""

    step_up_id: UUID | None = None


class OpenedBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a device needs to dial the stream socket. ``expires_in_s`` is the life of the token."""

    session_id: UUID
    host_id: UUID
    profile: str
    session_user: str
    stream_path: str
    stream_token: str
    host_channel_key: bytes
    expires_in_s: float
    attach_seq: int


class SessionBody(msgspec.Struct, frozen=True, kw_only=True):
    """A session as its person and the owners of its host see it."""

    session_id: UUID
    host_id: UUID
    host_name: str
    person_id: UUID
    person_name: str
    device_id: UUID
    device_name: str
    profile: str
    session_user: str
    state: str
    close_reason: str | None
    close_detail: str | None
    opened_at: datetime
    started_at: datetime | None
    detached_at: datetime | None
    closed_at: datetime | None
    expires_at: datetime


class SessionList(msgspec.Struct, frozen=True):
    """Answer of ``GET /terminal/sessions`` and ``GET /hosts/{host_id}/sessions``."""

    sessions: list[SessionBody]


def routes(
    sessions: Sessions,
    owned: OwnerSessions,
    callers: Callers,
    node_id: NodeId,
    max_body_bytes: int,
    probe: Callable[[Request], Response | None],
) -> list[BaseRoute]:
    """The routes of this feature. ``max_body_bytes`` is the key ``server.max_body_bytes``; ``probe`` answers the doctor."""

    async def open_session(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        body = await read_json(request, OpenWanted, max_body_bytes)
        opened = await sessions.open(
            caller, HostId(body.host_id), body.profile, body.session_user, StepUpId(body.step_up_id)
        )
        return json_response(_opened(opened), 201)

    async def attach(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        body = await read_json(request, AttachWanted, max_body_bytes)
        step_up_id = None if body.step_up_id is None else StepUpId(body.step_up_id)
        return json_response(_opened(await sessions.attach(caller, _session_id(request), step_up_id)))

    async def list_sessions(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        return _listed(await sessions.list(caller, closed=_with_ended(request)))

    async def list_of_host(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        host_id = HostId(path_id(request, "host_id", host_unknown()))
        return _listed(await owned.list(caller, host_id, closed=_with_ended(request)))

    async def get(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        return json_response(_session(await sessions.get(caller, _session_id(request))))

    async def close(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        await read_json(request, Empty, max_body_bytes)
        return json_response(_session(await sessions.close(caller, _session_id(request))))

    async def terminate(request: Request) -> Response:
        caller = await callers.caller(bearer_token(request))
        await read_json(request, Empty, max_body_bytes)
        return json_response(_session(await owned.terminate(caller, _session_id(request))))

    async def not_upgraded(request: Request) -> Response:
        """Names the node, so that anyone can prove that both paths of a session lead to one."""
        if (probed := probe(request)) is not None:
            return probed
        response = problem_response(Problem(426, "upgrade_required", "This path is a WebSocket."))
        response.headers["Bothy-Node"] = str(node_id)
        response.headers["Upgrade"] = "websocket"
        return response

    return [
        Route("/api/v1/terminal/sessions", list_sessions, methods=["GET"]),
        Route("/api/v1/terminal/sessions", open_session, methods=["POST"]),
        Route("/api/v1/terminal/sessions/{session_id}", get, methods=["GET"]),
        Route("/api/v1/terminal/sessions/{session_id}/attach", attach, methods=["POST"]),
        Route("/api/v1/terminal/sessions/{session_id}/close", close, methods=["POST"]),
        Route("/api/v1/terminal/sessions/{session_id}/terminate", terminate, methods=["POST"]),
        Route("/api/v1/hosts/{host_id}/sessions", list_of_host, methods=["GET"]),
        Route("/api/v1/terminal/sessions/{session_id}/stream", not_upgraded, methods=["GET"]),
        Route("/api/v1/hosts/sessions/{session_id}/stream", not_upgraded, methods=["GET"]),
    ]


def _session_id(request: Request) -> SessionId:
    return SessionId(path_id(request, "session_id", session_unknown()))


def _with_ended(request: Request) -> bool:
    wanted = request.query_params.get("all", "false")
    if wanted not in {"true", "false"}:
        raise Problem(400, "query_invalid", "The query parameter all is true or false.")
    return wanted == "true"


def _listed(views: list[SessionView]) -> Response:
    return json_response(SessionList([_session(each) for each in views]))


def _opened(opened: Opened) -> OpenedBody:
    record = opened.record
    return OpenedBody(
        session_id=record.id,
        host_id=record.host_id,
        profile=record.profile,
        session_user=record.session_user,
        stream_path=stream_path(record.id),
        stream_token=opened.stream_token,
        host_channel_key=opened.host_channel_key,
        expires_in_s=opened.expires_in_s,
        attach_seq=record.attach_seq,
    )


def _session(view: SessionView) -> SessionBody:
    record = view.record
    return SessionBody(
        session_id=record.id,
        host_id=record.host_id,
        host_name=view.host_name,
        person_id=record.person_id,
        person_name=view.person_name,
        device_id=record.device_id,
        device_name=view.device_name,
        profile=record.profile,
        session_user=record.session_user,
        state=record.state.value,
        close_reason=record.close_reason,
        close_detail=record.close_detail,
        opened_at=record.opened_at,
        started_at=record.started_at,
        detached_at=record.detached_at,
        closed_at=record.closed_at,
        expires_at=record.expires_at,
    )
