"""REST of terminal sessions, and the answer that proves the edge's routing rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bothy_server.hosts.app.api import host_unknown
from bothy_server.kernel.problems import Problem
from bothy_server.platform.http import problem_response
from bothy_server.platform.operations import Call, Empty, operation
from bothy_server.terminal.app.open_session import Opened, Sessions, session_unknown
from bothy_server.terminal.app.operator_sessions import OperatorSessions
from bothy_server.terminal.app.owner_sessions import OwnerSessions
from bothy_server.terminal.app.ports import SessionPage, SessionView
from bothy_wire.frames import Name
from bothy_wire.ids import HostId, NodeId, SessionId, StepUpId
from bothy_wire.limits import data_path, stream_path


class OpenWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A terminal to open. ``step_up_id`` is of the purpose ``open`` and of exactly this."""

    host_id: UUID
    profile: Name
    session_user: Name
    step_up_id: UUID


class AttachWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``step_up_id``, of the purpose ``attach``, is needed on another device than the session's last one, or late."""

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
    bytes_in: int
    """From the person, as it was last written: now and then, and when a pairing ends."""
    bytes_out: int
    """To the person, the same."""


class SessionList(msgspec.Struct, frozen=True):
    """Sessions, newest first."""

    sessions: list[SessionBody]
    before: UUID | None
    """Asks for the next page; null behind the last one."""


class PageAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which sessions of a list; newest come first."""

    all: bool = False
    """With those that are closed."""
    before: UUID | None = None
    """What the page before this one says of itself."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    """How many sessions at most."""


class ListAsked(PageAsked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same, and whose."""

    everyone: bool = False
    """Everybody's, for operators: facts, and no right on any of them."""


_UNKNOWN = {404: ("session_unknown",)}
_REACHABLE = {
    401: ("step_up_required",),
    403: ("right_missing",),
}


@dataclass(frozen=True, slots=True)
class TerminalSessions:
    """What persons do with their sessions, and owners with those on their hosts."""

    sessions: Sessions
    owned: OwnerSessions
    everyones: OperatorSessions

    @operation("GET", "/api/v1/terminal/sessions", query=ListAsked, refuses={403: ("operator_required",)})
    async def list_sessions(self, call: Call[None]) -> SessionList:
        """The caller's sessions; everybody's to an operator who asks for them."""
        asked = call.asked(ListAsked)
        found = self.everyones if asked.everyone else self.sessions
        return _listed(await found.list(call.caller, _page(asked)), asked)

    @operation(
        "POST",
        "/api/v1/terminal/sessions",
        201,
        refuses={
            **_REACHABLE,
            404: ("host_unknown",),
            409: ("host_not_active", "host_unavailable", "session_closed", "replaced"),
            422: ("profile_unknown", "user_unknown"),
            429: ("session_limit", "rate_limited"),
        },
        repeatable=True,
    )
    async def open_session(self, call: Call[OpenWanted]) -> OpenedBody:
        """Open a terminal."""
        body = call.body
        host_id, step_up_id = HostId(body.host_id), StepUpId(body.step_up_id)
        opened = await self.sessions.open(
            call.caller, host_id, body.profile, body.session_user, step_up_id, call.repeat
        )
        return _opened(opened)

    @operation("GET", "/api/v1/terminal/sessions/{session_id}", refuses=_UNKNOWN)
    async def get_session(self, call: Call[None]) -> SessionBody:
        """One session of the caller."""
        return _session(await self.sessions.get(call.caller, _session_id(call)))

    @operation(
        "POST",
        "/api/v1/terminal/sessions/{session_id}/attach",
        refuses={
            **_REACHABLE,
            404: ("session_unknown", "host_unknown"),
            409: ("session_closed", "host_not_active", "host_unavailable", "replaced"),
        },
        repeatable=True,
    )
    async def attach_session(self, call: Call[AttachWanted]) -> OpenedBody:
        """Continue a session on the caller's device; the device that has it gives way."""
        given = call.body.step_up_id
        step_up_id = None if given is None else StepUpId(given)
        return _opened(await self.sessions.attach(call.caller, _session_id(call), step_up_id, call.repeat))

    @operation("POST", "/api/v1/terminal/sessions/{session_id}/close", refuses=_UNKNOWN)
    async def close_session(self, call: Call[Empty]) -> SessionBody:
        """End a session of the caller. Closing twice changes nothing."""
        return _session(await self.sessions.close(call.caller, _session_id(call)))

    @operation("POST", "/api/v1/terminal/sessions/{session_id}/terminate", refuses=_UNKNOWN)
    async def terminate_session(self, call: Call[Empty]) -> SessionBody:
        """End anybody's session on a host that the caller owns. Doing so twice changes nothing."""
        return _session(await self.owned.terminate(call.caller, _session_id(call)))

    @operation("GET", "/api/v1/hosts/{host_id}/sessions", query=PageAsked, refuses={404: ("host_unknown",)})
    async def list_sessions_of_host(self, call: Call[None]) -> SessionList:
        """Everybody's sessions on a host that the caller owns."""
        host_id, asked = HostId(call.path_id("host_id", host_unknown())), call.asked(PageAsked)
        return _listed(await self.owned.list(call.caller, host_id, _page(asked)), asked)


def not_upgraded(node_id: NodeId, probe: Callable[[Request], Response | None]) -> list[Route]:
    """The stream paths without ``Upgrade`` name their node, so that anyone can prove that both lead to one.

    ``probe`` answers the doctor.
    """

    async def answer(request: Request) -> Response:
        if (probed := probe(request)) is not None:
            return probed
        response = problem_response(Problem(426, "upgrade_required", "This path is a WebSocket."))
        response.headers["Bothy-Node"] = str(node_id)
        response.headers["Upgrade"] = "websocket"
        return response

    return [Route(path("{session_id}"), answer, methods=["GET"]) for path in (stream_path, data_path)]


def _session_id(call: Call[Any]) -> SessionId:
    return SessionId(call.path_id("session_id", session_unknown()))


def _page(asked: PageAsked) -> SessionPage:
    return SessionPage(asked.all, None if asked.before is None else SessionId(asked.before), asked.limit)


def _listed(views: list[SessionView], asked: PageAsked) -> SessionList:
    return SessionList([_session(each) for each in views], views[-1].record.id if len(views) == asked.limit else None)


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
        bytes_in=view.bytes_in,
        bytes_out=view.bytes_out,
    )
