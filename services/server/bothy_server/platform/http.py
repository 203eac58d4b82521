"""Plumbing of the REST interface: strict bodies in, problems out (``docs/spec/protocol.md``, General)."""

from __future__ import annotations

import functools
import http
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import StorageUnavailable
from bothy_wire.strict_json import StrictDecoder

T = TypeVar("T", bound=msgspec.Struct)

ExceptionHandlers = Mapping[Any, Callable[[Request, Any], Awaitable[Response]]]

SECURITY_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""What every answer carries unless its endpoint chose another value."""


async def read_body(request: Request, max_bytes: int) -> bytes:
    """The body; not more than ``max_bytes`` are held. Raises 413 ``body_too_large``."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise Problem(413, "body_too_large", f"The body may have at most {max_bytes} bytes.")
    return bytes(body)


def check_is_json(request: Request) -> None:
    """Raises 415 ``content_type_invalid`` for another content type: a web page can send those without asking."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Problem(415, "content_type_invalid", "Send the body as application/json.")


def decode_json(raw: bytes, kind: type[T]) -> T:
    """The body as ``kind``, a strict ``msgspec.Struct``. Raises 400 ``body_invalid``."""
    try:
        decoded: T = _decoder(kind).decode(raw)
        return decoded
    except ValueError as error:
        raise Problem(400, "body_invalid", str(error)) from error


@functools.cache
def _decoder(kind: type) -> StrictDecoder:
    """One decoder a kind of body; there are as many as there are operations."""
    return StrictDecoder(kind)


def bearer_token(request: Request) -> str | None:
    """The token of ``Authorization: Bearer``, or None."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def json_response(body: Any, status: int = 200) -> Response:
    """An answer from a ``msgspec.Struct``, a dataclass or plain values."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def problem_response(problem: Problem) -> Response:
    """RFC 9457."""
    body = {
        "type": "about:blank",
        "title": http.HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
    }
    headers = {} if problem.retry_after_s is None else {"retry-after": str(problem.retry_after_s)}
    return Response(msgspec.json.encode(body), problem.status, headers, "application/problem+json")


def exception_handlers(retry_after: float) -> ExceptionHandlers:
    """Handlers for a Starlette application; ``retry_after`` in seconds, for when the database is away."""
    away = Problem(503, "unavailable", "The database cannot be used. Try again.", retry_after_s=math.ceil(retry_after))
    fault = Problem(500, "internal", "The server made a mistake. Its log says more.")

    async def refused(_: Request, problem: Problem) -> Response:
        return problem_response(problem)

    async def unavailable(_: Request, __: StorageUnavailable) -> Response:
        return problem_response(away)

    async def unrouted(_: Request, error: HTTPException) -> Response:
        return _unrouted(error)

    async def failed(_: Request, __: Exception) -> Response:
        return problem_response(fault)

    return {Problem: refused, StorageUnavailable: unavailable, HTTPException: unrouted, Exception: failed}


class SecurityHeaders:
    """ASGI middleware that adds :data:`SECURITY_HEADERS`."""

    def __init__(self, app: ASGIApp) -> None:
        """``app`` is everything inside."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(header for header in _ENCODED_HEADERS if header[0] not in present),
                ]
            await send(message)

        await self._app(scope, receive, send_with_headers)


_ENCODED_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


def _unrouted(error: HTTPException) -> Response:
    """Starlette's own refusals: no such path, or not with this method."""
    match error.status_code:
        case 404:
            problem = Problem(404, "path_unknown", "There is nothing at this path.")
        case 405:
            problem = Problem(405, "method_not_allowed", "This path does not take this method.")
        case status:
            problem = Problem(status, http.HTTPStatus(status).name.lower(), error.detail)
    response = problem_response(problem)
    response.headers.update(error.headers or {})
    return response
