"""Signals as text: a kind and ids, in compact JSON, and the strict way back.

What may travel is a table of kinds that the features register (``docs/spec/signals.md``). The channel is shared: a kind
outside ``terminal.`` belongs to somebody else and is no error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import NoReturn, get_type_hints
from uuid import UUID

from bothy_server.kernel.unit import Signal
from bothy_wire.ids import parse_id

PREFIX = "terminal."
"""How our kinds begin."""

PAYLOAD_LIMIT_BYTES = 8000
"""A payload must be shorter. Source: PostgreSQL, NOTIFY, "Parameters": "must be shorter than 8000 bytes"."""


class SignalMalformed(ValueError):  # noqa: N818 - says what the payload is
    """A payload that claims to be ours, or nobody's, and breaks the form of its kind. The message holds no content."""


class SignalTable:
    """The kinds that may travel. A class that is no signal of ids raises ``ValueError``: our own fault, at the start."""

    def __init__(self, kinds: Iterable[type[Signal]]) -> None:
        self._kinds: dict[str, type[Signal]] = {}
        self._ids: dict[type[Signal], tuple[str, ...]] = {}
        for signal in kinds:
            self._register(signal)

    def encode(self, signal: Signal) -> str:
        """The payload of a registered signal."""
        ids = {name: str(getattr(signal, name)) for name in self._ids[type(signal)]}
        return _compact({"kind": signal.kind, **ids})

    def decode(self, payload: str) -> Signal | None:
        """Read a payload; ``None`` for a kind outside :data:`PREFIX`. Raises :class:`SignalMalformed`."""
        values = _members(payload)
        kind = values.pop("kind", None)
        if not isinstance(kind, str):
            raise SignalMalformed("no kind")
        if not kind.startswith(PREFIX):
            return None
        signal = self._kinds.get(kind)
        if signal is None:
            raise SignalMalformed("unknown kind")
        if values.keys() != set(self._ids[signal]):
            raise SignalMalformed("not the fields of its kind")
        return signal(**{name: _id(value) for name, value in values.items()})

    def _register(self, signal: type[Signal]) -> None:
        hints = get_type_hints(signal)
        names = tuple(field.name for field in fields(signal))
        if not all(_is_id(hints[name]) for name in names):
            raise ValueError(f"{signal.__name__} has a field that is no id")
        if not signal.kind.startswith(PREFIX) or signal.kind in self._kinds:
            raise ValueError(f"{signal.__name__} has a foreign or a taken kind")
        self._kinds[signal.kind] = signal
        self._ids[signal] = names


def _compact(members: dict[str, str]) -> str:
    return json.dumps(members, separators=(",", ":"))


def _members(payload: str) -> dict[str, object]:
    if len(payload.encode(errors="surrogatepass")) >= PAYLOAD_LIMIT_BYTES:
        raise SignalMalformed("too long")
    try:
        value = json.loads(payload, object_pairs_hook=_unique, parse_constant=_not_json)
    except (ValueError, RecursionError) as error:  # the latter from brackets in brackets
        raise SignalMalformed("not JSON") from error
    if not isinstance(value, dict):
        raise SignalMalformed("not an object")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name twice")
    return members


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def _id(value: object) -> UUID:
    if not isinstance(value, str):
        raise SignalMalformed("an id that is no text")
    try:
        return parse_id(value)
    except ValueError as error:
        raise SignalMalformed("an id that is no canonical UUID") from error


def _is_id(hint: object) -> bool:
    """A UUID, or a ``NewType`` over it."""
    return getattr(hint, "__supertype__", hint) is UUID
