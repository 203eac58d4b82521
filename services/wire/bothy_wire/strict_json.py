"""JSON that means one thing: no unknown field, no wrong type, no name twice, ids and bytes in their one canonical spelling."""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from uuid import UUID

import msgspec

_QUOTED = re.compile(r"^(Invalid (?:enum )?value) .*?(?=(?: - at [^'\"]*)?\Z)", re.DOTALL)
"""The one message of the JSON library that quotes a value of the input."""
_PATTERN = re.compile(r"^Expected `str` matching regex .*'(?=(?: - at .*)?\Z)", re.DOTALL)
"""The one that only its programmer understands."""


class StrictDecoder:
    """Reads one kind of value, a ``msgspec.Struct`` that forbids unknown fields or a union of such.

    The JSON library also reads other spellings of a UUID, ignores bits of base64 that no byte needs and lets the last of
    two equal names win; each could mean two things to two readers.
    """

    def __init__(self, kind: Any) -> None:
        """``kind`` is what ``msgspec.json.Decoder`` takes."""
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)

    def decode(self, raw: bytes) -> Any:
        """The value. Raises ``ValueError`` with a message that never quotes the input's values."""
        try:
            value = self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise ValueError(_in_words(str(error))) from error
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ValueError("this is not JSON") from error
        written = json.loads(raw, object_pairs_hook=_without_doubles)
        if not _canonical(msgspec.to_builtins(value, builtin_types=(UUID, bytes)), written):
            raise ValueError("an id or bytes are not in canonical form")
        return value


def _in_words(message: str) -> str:
    return _PATTERN.sub("This text holds characters that it may not hold", _QUOTED.sub(r"\1", message))


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return fields


def _canonical(value: Any, written: Any) -> bool:
    """Whether all ids and bytes of the value are written in their canonical form, each at its own place."""
    match value, written:
        case UUID(), str():
            return str(value) == written
        case bytes(), str():
            return base64.b64encode(value).decode() == written
        case dict(), dict():
            # What is not written has its default, and no default is an id or bytes.
            return all(_canonical(value[name], each) for name, each in written.items())
        case list(), list():
            return all(map(_canonical, value, written))
        case _:
            return True
