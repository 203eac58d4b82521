"""REST as an OpenAPI document, made from the table of operations: ``python tools/openapi.py`` writes ``docs/api/openapi.yaml``.

``--check`` fails when it is stale. Every class with operations in an ``adapters/http`` of the server is found by itself.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

import bothy_server
from api_page import (
    ID_PATTERN,
    PROTOCOL,
    Document,
    attribute_docs,
    field_meanings,
    page,
    prose,
    schemas,
    write_or_check,
)
from bothy_server.platform.operations import Operation, operations_of
from bothy_server.platform.rest_api import LONGEST_KEY
from bothy_wire.limits import data_path, stream_path

PAGE = Path("docs/api/openapi.yaml")

_WAITS = {
    409: ("idempotency_running",),
    429: ("rate_limited", "session_limit", "slow_down", "feed_limit"),
    503: ("unavailable", "node_leaving"),
}
"""Refusals that say when to try again."""


def adapters() -> list[type]:
    """Every class with operations."""
    names = (found.name for found in pkgutil.walk_packages(bothy_server.__path__, "bothy_server."))
    modules = [importlib.import_module(name) for name in names if ".adapters.http." in name]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and operations_of(kind)
    ]


def document() -> Document:
    """The whole document."""
    rows = {kind: [row for row, _ in operations_of(kind)] for kind in adapters()}
    told = field_meanings("Fields of REST")
    for kind in rows:
        told |= attribute_docs(inspect.getsource(inspect.getmodule(kind)))  # type: ignore[arg-type]  # a class has one
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "bothy",
            "version": "1",
            "description": _INFO,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {
                "url": "https://relay.example.com",
                "description": "The relay's public address: the edge, or a single node.",
            }
        ],
        "security": [{"accessToken": []}],
        "tags": [{"name": kind.__name__, "description": prose(kind.__doc__)} for kind in rows] + [_SOCKETS],
        "paths": _paths(rows, told),
        "components": {
            "securitySchemes": {"accessToken": _ACCESS_TOKEN},
            "parameters": {"IdempotencyKey": _IDEMPOTENCY_KEY, "LastEventId": _LAST_EVENT_ID},
            "headers": {"RetryAfter": _RETRY_AFTER},
            "responses": dict(_shared(rows.values())),
            "schemas": {"Problem": _PROBLEM, **schemas(_bodies(rows.values()), told)},
        },
    }


_INFO = """\
REST of bothy. The sockets, to which it hands out the tokens, are in asyncapi.yaml; what the operations bring about is told in \
docs/spec/protocol.md.

Bodies are JSON, strict: an unknown field, a name that stands twice, a value outside its bounds or another spelling of an id or \
of bytes is refused with 400 `body_invalid`. Instants are RFC 3339 in UTC, lives are numbers of seconds with a name that ends in \
`_s`. A refusal is a problem (RFC 9457); it wrote nothing and spent nothing."""

_ACCESS_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": "What `make_access_token` answers. It names a person and their device, and lives for minutes.",
}

_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The caller's own name for this act. Sent again with the same body it makes nothing new and tells what was made.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~](?:[ -~]*[!-~])?$"},
}

_LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the last event that was seen, on any node: the stream goes on behind it.",
    "schema": {"type": "string"},
}

_RETRY_AFTER = {
    "description": "Seconds after which the same may be tried again.",
    "schema": {"type": "integer", "minimum": 1},
}

_PROBLEM = {
    "title": "Problem",
    "description": "A refusal (RFC 9457). `code` is for programs, `detail` says to a person what to do.",
    "type": "object",
    "properties": {
        "type": {"const": "about:blank"},
        "title": {"type": "string", "description": "The phrase of the status."},
        "status": {"type": "integer", "description": "The status of the answer."},
        "code": {"type": "string", "description": "Why; it never changes its meaning."},
        "detail": {"type": "string", "minLength": 1, "description": "What to do about it."},
    },
    "required": ["type", "title", "status", "code", "detail"],
    "additionalProperties": False,
}

_SOCKETS = {
    "name": "Sockets",
    "description": "The paths of two sockets without `Upgrade`; the sockets are in asyncapi.yaml.",
}


def _paths(rows: Mapping[type, Iterable[Operation]], told: Mapping[str, str]) -> Document:
    found: Document = {}
    for kind, those in rows.items():
        for row in those:
            found.setdefault(row.path, {})[row.method.lower()] = _operation(kind.__name__, row, told)
    for side, path in (("stream", stream_path("{session_id}")), ("data", data_path("{session_id}"))):
        found[path] = {"get": _socket(side, path, told)}
    return found


def _operation(tag: str, row: Operation, told: Mapping[str, str]) -> Document:
    words = prose(row.words)
    summary = re.split(r"(?<=\.)\s", words)[0]
    parameters = [*_in_path(row.path, told), *(_in_query(row.query, told) if row.query else ())]
    if row.repeatable:
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
    if row.streams:
        parameters.append({"$ref": "#/components/parameters/LastEventId"})
    found: Document = {"tags": [tag], "operationId": row.name, "summary": summary}
    if words != summary:
        found["description"] = words
    if not row.signed_in:
        found["security"] = []
    if parameters:
        found["parameters"] = parameters
    if row.takes is not None:
        found["requestBody"] = {"required": True, "content": _json(row.takes)}
    refusals = {str(status): _refusal(status, codes) for status, codes in row.all_refusals().items()}
    return {**found, "responses": {str(row.status): _success(row), **refusals}}


def _in_path(path: str, told: Mapping[str, str]) -> Iterator[Document]:
    for name in re.findall(r"{(\w+)}", path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": told.get(name, "An id."),
            "schema": {"type": "string", "format": "uuid", "pattern": ID_PATTERN},
        }


def _in_query(kind: type[msgspec.Struct], told: Mapping[str, str]) -> Iterator[Document]:
    schema = schemas([kind], told)[kind.__name__]
    for name, field in schema["properties"].items():
        shape = {each: value for each, value in field.items() if each not in {"description", "default"}}
        match shape:
            case {"anyOf": [one, {"type": "null"}]}:  # one that is left out
                shape = one
            case _:
                shape |= {each: field[each] for each in ("default",) if each in field}
        description = field.get("description") or schema["description"]
        required = {"required": True} if name in schema["required"] else {}
        yield {"name": name, "in": "query", "description": description, **required, "schema": shape}


def _success(row: Operation) -> Document:
    if row.answers is None:
        return {"description": "Done."}
    if not issubclass(row.answers, msgspec.Struct):
        return {
            "description": prose(row.answers.__doc__),
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    found: Document = {"description": prose(row.answers.__doc__), "content": _json(row.answers)}
    if row.max_age_s:
        kept = {"schema": {"const": f"max-age={row.max_age_s}"}}
        found["headers"] = {"Cache-Control": {"description": "How long it may be kept.", "required": True, **kept}}
    return found


def _refusal(status: int, codes: Sequence[str]) -> Document:
    """One that many operations have stands once."""
    return {"$ref": f"#/components/responses/{codes[0]}"} if len(codes) == 1 else _problems(status, codes, _meanings())


def _shared(rows: Iterable[Iterable[Operation]]) -> Iterator[tuple[str, Document]]:
    """The refusals that stand alone at their status in some operation."""
    refusals = {each for those in rows for row in those for each in row.all_refusals().items()}
    meanings = _meanings()
    for status, codes in sorted(refusals):
        if len(codes) == 1:
            yield codes[0], _problems(status, codes, meanings)


def _problems(status: int, codes: Sequence[str], meanings: Mapping[str, str]) -> Document:
    words = [f"`{code}`: {meanings[code]}." if code in meanings else f"`{code}`." for code in codes]
    own = {"status": {"const": status}, "code": {"enum": list(codes)}}
    schema = {"allOf": [{"$ref": "#/components/schemas/Problem"}], "properties": own}
    waits = set(codes) & set(_WAITS.get(status, ()))
    headers = {"headers": {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}} if waits else {}
    return {"description": " ".join(words), **headers, "content": {"application/problem+json": {"schema": schema}}}


def _socket(side: str, path: str, told: Mapping[str, str]) -> Document:
    """Not in the table: an edge is proved with it, and nobody else calls it."""
    refusal = _problems(426, ("upgrade_required",), {"upgrade_required": "this path is a WebSocket"})
    node = {
        "description": "The node that answers.",
        "required": True,
        "schema": {"type": "string", "pattern": ID_PATTERN},
    }
    upgrade = {"description": "What to ask for.", "required": True, "schema": {"const": "websocket"}}
    words = f"The node that has the {side} sockets of this session, so that anyone can prove the edge's rule."
    return {
        "tags": ["Sockets"],
        "operationId": f"name_node_of_{side}",
        "summary": words,
        "security": [],
        "parameters": [{**each, "schema": {"type": "string"}} for each in _in_path(path, told)],
        "responses": {"426": {**refusal, "headers": {"Bothy-Node": node, "Upgrade": upgrade}}},
    }


def _json(kind: type[msgspec.Struct]) -> Document:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}


def _bodies(rows: Iterable[Iterable[Operation]]) -> list[type[msgspec.Struct]]:
    """Each once. Two of one name would be one schema."""
    kinds = (kind for those in rows for row in those for kind in (row.takes, row.answers))
    found = {kind for kind in kinds if kind is not None and issubclass(kind, msgspec.Struct)}
    assert len({kind.__name__ for kind in found}) == len(found), sorted(kind.__name__ for kind in found)
    return sorted(found, key=lambda kind: kind.__name__)


@functools.cache
def _meanings() -> dict[str, str]:
    """When a refusal of any operation comes, by its code: a table of the protocol's page."""
    section = PROTOCOL.read_text().partition("## General\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| \d{3} \| `(\w+)` \| (.+) \|$", section, re.MULTILINE))


def text() -> str:
    """What the file holds."""
    return page("Made from the table of operations by tools/openapi.py; `make api` writes it.", document())


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, text))
