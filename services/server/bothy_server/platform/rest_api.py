"""Serves a table of operations: strict bodies and queries in, typed answers and declared problems out."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bothy_server.kernel.caller import Caller, RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.client_address import Network, client_address, forwarded_chain
from bothy_server.platform.client_rates import ClientRates, client_network
from bothy_server.platform.http import bearer_token, check_is_json, decode_json, json_response, read_body
from bothy_server.platform.operations import AnonymousCall, Call, Operation, operations_of
from bothy_server.platform.server_sent_events import EventStream

LONGEST_KEY = 128
"""Characters of an ``Idempotency-Key``."""
_BARE = re.compile(r"true|false|0|-?[1-9][0-9]{0,18}")

_log = logging.getLogger(__name__)

_Bound = tuple[Operation, Callable[[Any], Awaitable[Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestApi:
    """Makes routes of operations. ``caller`` turns an access token into a person, or raises 401 ``token_invalid``.

    ``max_body_bytes``, ``trusted`` and ``repeat_window`` are the keys ``server.max_body_bytes``, ``server.trusted_proxies``
    and ``identity.repeat_window``.
    """

    caller: Callable[[str | None], Awaitable[Caller]]
    client_rates: ClientRates
    device_rates: ClientRates
    max_body_bytes: int
    trusted: Sequence[Network]
    repeat_window: float

    def routes(self, *adapters: object) -> list[Route]:
        """The routes of these adapters, one for each path: who uses another method is told all that it takes."""
        by_path: dict[str, dict[str, _Bound]] = {}
        for adapter in adapters:
            for row, act in operations_of(adapter):
                by_path.setdefault(row.path, {})[row.method] = (row, act)
        # A path without a parameter is no other one's id, whatever the method.
        return [self._route(*each) for each in sorted(by_path.items(), key=lambda each: "{" in each[0])]

    def _route(self, path: str, acts: Mapping[str, _Bound]) -> Route:
        route = Route(path, functools.partial(self._answer, acts))
        route.methods = None  # any
        return route

    async def _answer(self, acts: Mapping[str, _Bound], request: Request) -> Response:
        with_head = "GET" in acts and not acts["GET"][0].streams
        allowed = sorted({*acts, *({"HEAD"} if with_head else ())})
        if request.method not in allowed:
            raise HTTPException(405, headers={"allow": ", ".join(allowed)})
        row, act = acts["GET" if request.method == "HEAD" else request.method]
        try:
            answer = await act(await self._call(row, request))
        except Problem as problem:
            _tell(row, problem.status, problem.code)
            raise
        except StorageUnavailable:
            _tell(row, 503, "unavailable")
            raise
        _tell(row, row.status, None)
        response = _response(row, answer)
        if row.max_age_s:
            response.headers["cache-control"] = f"max-age={row.max_age_s}"
        return response

    async def _call(self, row: Operation, request: Request) -> AnonymousCall[Any]:
        address = self._address(request)
        if row.guessable:
            self.client_rates.spend(address)
        raw = b"" if row.takes is None else await read_body(request, self.max_body_bytes)
        # Behind the body, which may come slowly: whoever is revoked meanwhile is no caller any more.
        caller = await self.caller(bearer_token(request)) if row.signed_in else None
        if caller is not None:  # not counted by person: a stolen device must not lock out who revokes it
            self.device_rates.spend(str(caller.device_id))
        body = None if row.takes is None else _body(request, raw, row.takes)
        query = None if row.query is None else _query(request, row.query)
        if caller is None:
            return AnonymousCall(body=body, path=request.path_params, query=query, address=address)
        repeat = _repeat_key(request, raw, self.repeat_window) if row.repeatable else None
        return Call(
            body=body,
            path=request.path_params,
            query=query,
            address=address,
            caller=caller,
            repeat=repeat,
            last_event_id=request.headers.get("last-event-id"),
        )

    def _address(self, request: Request) -> str:
        assert request.client is not None
        chain = forwarded_chain(request.headers.getlist("x-forwarded-for"))
        return client_network(client_address(request.client.host, chain, self.trusted))


def _response(row: Operation, answer: Any) -> Response:
    if row.answers is None:
        return Response(status_code=row.status)
    return answer.response() if isinstance(answer, EventStream) else json_response(answer, row.status)


def _tell(row: Operation, status: int, code: str | None) -> None:
    """What an operation answered, and when it was none of what it declares."""
    if code is not None and code not in row.all_refusals().get(status, ()):
        _log.error("undeclared refusal", extra={"bothy.operation": row.name, "bothy.problem": code})
    _log.debug("answered", extra={"bothy.operation": row.name, "bothy.status": status, "bothy.problem": code})


def _body(request: Request, raw: bytes, kind: type[msgspec.Struct]) -> msgspec.Struct:
    check_is_json(request)
    return decode_json(raw, kind)


def _query(request: Request, kind: type[msgspec.Struct]) -> msgspec.Struct:
    """Each parameter once, read as strictly as a field of a body."""
    given = request.query_params.multi_items()
    if len({name for name, _ in given}) != len(given):
        raise Problem(400, "query_invalid", "A query parameter stands twice.")
    bare = _bare(kind)
    # Numbers and truths stand in JSON as they are, everything else is a text.
    fields = (
        f"{json.dumps(name)}:{text if name in bare and _BARE.fullmatch(text) else json.dumps(text)}"
        for name, text in given
    )
    try:
        return decode_json(f"{{{','.join(fields)}}}".encode(), kind)
    except Problem as problem:
        raise Problem(400, "query_invalid", problem.detail) from problem


@functools.cache
def _bare(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The fields that hold a number or a truth, with or without null beside it."""
    struct = msgspec.inspect.type_info(kind)
    assert isinstance(struct, msgspec.inspect.StructType)
    found = {field.encode_name: getattr(field.type, "types", (field.type,)) for field in struct.fields}
    numbers = msgspec.inspect.BoolType | msgspec.inspect.IntType
    return frozenset(name for name, types in found.items() if any(isinstance(each, numbers) for each in types))


def _repeat_key(request: Request, raw: bytes, life_s: float) -> RepeatKey | None:
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    if len(given) > 1 or not 0 < len(given[0]) <= LONGEST_KEY or not (given[0].isascii() and given[0].isprintable()):
        detail = f"Idempotency-Key is one header of 1 to {LONGEST_KEY} printable ASCII characters."
        raise Problem(400, "idempotency_key_invalid", detail)
    asked = b"\n".join((request.method.encode(), request.url.path.encode(), raw))
    return RepeatKey(given[0], hashlib.sha256(asked).digest(), life_s)
