"""JSON that means one thing: no unknown field, no wrong type, ids in their one canonical spelling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import msgspec


class StrictDecoder:
    """Reads one kind of value, a ``msgspec.Struct`` that forbids unknown fields or a union of such.

    The JSON library also reads other spellings of a UUID; two spellings of one id could mean two things to two readers.
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
        if not all(
            b'"%s"' % str(each).encode() in raw for each in _ids(msgspec.to_builtins(value, builtin_types=(UUID,)))
        ):
            raise ValueError("an id is not in canonical form")
        return value


def _ids(value: Any) -> Iterator[UUID]:
    match value:
        case UUID():
            yield value
        case dict():
            for each in value.values():
                yield from _ids(each)
        case list():
            for each in value:
                yield from _ids(each)
