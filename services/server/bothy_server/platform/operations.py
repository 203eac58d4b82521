"""REST as a table of typed operations: what each takes, answers and refuses stands once, at its method.

A feature's HTTP adapter is a class whose methods carry :func:`operation` and a docstring::

    @operation("POST", "/api/v1/hosts", 201, refuses={403: ("operator_required",), 409: ("host_exists",)})
    async def create_host(self, call: Call[HostWanted]) -> HostBody: ...

The annotations say what the body is, who may call (:class:`Call`: a signed-in person; :class:`AnonymousCall`: anybody) and
what the answer is; an operation that answers an :class:`EventStream` goes on telling. The routes (``rest_api.py``) and ``docs/api/openapi.yaml`` are made from the same table.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

from bothy_server.kernel.caller import Caller, RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.platform.server_sent_events import EventStream
from bothy_wire.ids import parse_id

Body = TypeVar("Body", bound=msgspec.Struct | None)
Query = TypeVar("Query", bound=msgspec.Struct)
Handler = Callable[[Any, Any], Awaitable[Any]]
H = TypeVar("H", bound=Handler)

_MARK = "_bothy_operation"


class Empty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A body without fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymousCall(Generic[Body]):
    """A request as an operation sees it that anybody may call; ``AnonymousCall[None]`` has no body.

    ``address`` is the client's, as far as the trusted proxies tell it; of IPv6 the /64, which is one client's to choose from.
    """

    body: Body
    path: Mapping[str, str]
    query: msgspec.Struct | None
    address: str

    def path_id(self, name: str, unknown: Problem) -> UUID:
        """An id in the path; any spelling but the canonical one is answered as ``unknown``: no such thing exists."""
        try:
            return parse_id(self.path[name])
        except ValueError as error:
            raise unknown from error

    def asked(self, kind: type[Query]) -> Query:
        """The query, which the operation declared to be of this kind."""
        assert isinstance(self.query, kind)
        return self.query


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(AnonymousCall[Body]):
    """The same of a signed-in person. ``repeat`` is there when the operation is repeatable and the caller named the act,
    ``last_event_id`` when they continue a stream.
    """

    caller: Caller
    repeat: RepeatKey | None
    last_event_id: str | None


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the table. ``refuses`` holds, by status, the codes of the problems that are its own."""

    method: Literal["GET", "POST"]
    path: str
    status: int
    name: str
    words: str
    takes: type[msgspec.Struct] | None
    query: type[msgspec.Struct] | None
    answers: type[msgspec.Struct | EventStream] | None
    refuses: Mapping[int, tuple[str, ...]]
    signed_in: bool
    repeatable: bool
    max_age_s: int

    @property
    def guessable(self) -> bool:
        """Whether a stranger may try values on it: its calls are counted by the client's network."""
        return not self.signed_in and self.takes is not None

    @property
    def streams(self) -> bool:
        """Whether its answer goes on until one of both ends has enough."""
        return self.answers is EventStream

    def all_refusals(self) -> dict[int, tuple[str, ...]]:
        """By status: its own, and those of every operation of its kind."""
        found: dict[int, list[str]] = {}
        for refuses in (self.refuses, *self._of_its_kind()):
            for status, codes in refuses.items():
                known = found.setdefault(status, [])
                known += (code for code in codes if code not in known)
        return {status: tuple(codes) for status, codes in sorted(found.items())}

    def _of_its_kind(self) -> Iterable[Mapping[int, tuple[str, ...]]]:
        if self.signed_in or self.takes is not None:
            yield {503: ("unavailable",)}
        if self.signed_in:
            yield {401: ("token_invalid", "sign_in_required")}
        if self.guessable or self.signed_in:
            yield {429: ("rate_limited",)}
        if self.takes is not None:
            yield {400: ("body_invalid",), 413: ("body_too_large",), 415: ("content_type_invalid",)}
        if self.query is not None:
            yield {400: ("query_invalid",)}
        if self.repeatable:
            yield {400: ("idempotency_key_invalid",), 409: ("idempotency_running",), 422: ("idempotency_mismatch",)}


def operation(
    method: Literal["GET", "POST"],
    path: str,
    status: int = 200,
    *,
    refuses: Mapping[int, tuple[str, ...]] | None = None,
    query: type[msgspec.Struct] | None = None,
    repeatable: bool = False,
    max_age_s: int = 0,
) -> Callable[[H], H]:
    """Make a method an operation. Its docstring becomes the documentation, ``status`` is that of success.

    ``repeatable``: makes something, and takes ``Idempotency-Key``. ``max_age_s``: how long the answer may be kept.
    """

    def mark(method_: H) -> H:
        hints = get_type_hints(method_)
        call = hints["call"]
        takes = get_args(call)[0]
        answers = hints["return"]
        row = Operation(
            method,
            path,
            status,
            method_.__name__,
            inspect.cleandoc(method_.__doc__ or ""),
            None if takes is type(None) else takes,
            query,
            None if answers is type(None) else answers,
            refuses or {},
            get_origin(call) is Call,
            repeatable,
            max_age_s,
        )
        setattr(method_, _MARK, row)
        return method_

    return mark


def operations_of(adapter: object) -> list[tuple[Operation, Any]]:
    """The rows of an adapter, or of its class, in the order of its source, each with the method."""
    kind = adapter if isinstance(adapter, type) else type(adapter)
    names = [name for name, member in vars(kind).items() if hasattr(member, _MARK)]
    return [(getattr(getattr(kind, name), _MARK), getattr(adapter, name)) for name in names]
