"""JSON that means one thing: no unknown field, no wrong type, no name twice, ids in their one canonical spelling."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import msgspec


class StrictDecoder:
    """Reads one kind of value, a ``msgspec.Struct`` that forbids unknown fields or a union of such.

    The JSON library also reads other spellings of a UUID and lets the last of two equal names win; either could mean two
    things to two readers.
    """

    def __init__(self, kind: Any) -> None:
        """``kind`` is what ``msgspec.json.Decoder`` takes."""
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)

    def decode(self, raw: bytes) -> Any:
        """The value. Raises ``ValueError`` with a message that never quotes the input's values."""
        try:
            value = self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ValueError("this is not JSON") from error
        written = json.loads(raw, object_pairs_hook=_without_doubles)
        if not _canonical(msgspec.to_builtins(value, builtin_types=(UUID,)), written):
            raise ValueError("an id is not in canonical form")
        return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return fields


def _canonical(value: Any, written: Any) -> bool:
    """Whether every id of the value is written in its canonical form at its own place."""
    match value, written:
        case UUID(), str():
            return str(value) == written
        case dict(), dict():
            # What is not written has its default, and no default is an id.
            return all(_canonical(value[name], each) for name, each in written.items())
        case list(), list():
            return all(map(_canonical, value, written))
        case _:
            return True
