"""Serves a table of operations: strict bodies and queries in, typed answers and declared problems out."""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bothy_server.kernel.caller import Caller, RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.platform.client_address import Network, client_address, forwarded_chain
from bothy_server.platform.client_rates import ClientRates, client_network
from bothy_server.platform.http import bearer_token, decode_json, json_response, read_body
from bothy_server.platform.operations import AnonymousCall, Call, Operation, operations_of

_LONGEST_KEY = 128

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestApi:
    """Makes routes of operations. ``caller`` turns an access token into a person, or raises 401 ``token_invalid``.

    ``max_body_bytes``, ``trusted`` and ``repeat_window`` are the keys ``server.max_body_bytes``, ``server.trusted_proxies``
    and ``identity.repeat_window``.
    """

    caller: Callable[[str | None], Awaitable[Caller]]
    client_rates: ClientRates
    max_body_bytes: int
    trusted: Sequence[Network]
    repeat_window: float

    def routes(self, *adapters: object) -> list[Route]:
        """The routes of these adapters."""
        return [
            Route(row.path, functools.partial(self._answer, row, method), methods=[row.method])
            for adapter in adapters
            for row, method in operations_of(adapter)
        ]

    async def _answer(self, row: Operation, method: Callable[[Any], Awaitable[Any]], request: Request) -> Response:
        try:
            answer = await method(await self._call(row, request))
        except Problem as problem:
            if problem.code not in row.all_refusals().get(problem.status, ()):
                _log.error("undeclared refusal", extra={"bothy.operation": row.name, "bothy.problem": problem.code})
            raise
        response = json_response(answer, row.status)
        if row.max_age_s:
            response.headers["cache-control"] = f"max-age={row.max_age_s}"
        return response

    async def _call(self, row: Operation, request: Request) -> AnonymousCall[Any]:
        address = self._address(request)
        if row.guessable:
            self.client_rates.spend(address)
        caller = await self.caller(bearer_token(request)) if row.signed_in else None
        raw = b"" if row.takes is None else await read_body(request, self.max_body_bytes)
        body = None if row.takes is None else decode_json(raw, row.takes)
        query = None if row.query is None else _query(request, row.query)
        if caller is None:
            return AnonymousCall(body=body, path=request.path_params, query=query, address=address)
        repeat = _repeat_key(request, raw, self.repeat_window) if row.repeatable else None
        return Call(body=body, path=request.path_params, query=query, address=address, caller=caller, repeat=repeat)

    def _address(self, request: Request) -> str:
        assert request.client is not None
        chain = forwarded_chain(request.headers.getlist("x-forwarded-for"))
        return client_network(client_address(request.client.host, chain, self.trusted))


def _query(request: Request, kind: type[msgspec.Struct]) -> msgspec.Struct:
    """Each parameter once; text becomes what its field is."""
    given = request.query_params.multi_items()
    if len({name for name, _ in given}) != len(given):
        raise Problem(400, "query_invalid", "A query parameter stands twice.")
    truths = {field.encode_name for field in msgspec.structs.fields(kind) if field.type is bool}
    if any(name in truths and value not in {"true", "false"} for name, value in given):
        raise Problem(400, "query_invalid", "A query parameter that is true or false is something else.")
    try:
        return msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(400, "query_invalid", str(error)) from error


def _repeat_key(request: Request, raw: bytes, life_s: float) -> RepeatKey | None:
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    if len(given) > 1 or not 0 < len(given[0]) <= _LONGEST_KEY or not (given[0].isascii() and given[0].isprintable()):
        detail = f"Idempotency-Key is one header of 1 to {_LONGEST_KEY} printable ASCII characters."
        raise Problem(400, "idempotency_key_invalid", detail)
    asked = b"\n".join((request.method.encode(), request.url.path.encode(), raw))
    return RepeatKey(given[0], hashlib.sha256(asked).digest(), life_s)
