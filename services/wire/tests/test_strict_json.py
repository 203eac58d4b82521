"""What frames, bodies and handshake payloads share: one meaning for one text."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec
import pytest

from bothy_wire.frames import Name
from bothy_wire.strict_json import StrictDecoder

ID = "01890a5d-ac96-774b-bcce-b302099a8057"


class Body(msgspec.Struct, forbid_unknown_fields=True):
    ids: list[UUID]
    by_name: dict[str, UUID | None]
    note: str = ""
    key: bytes | None = None


DECODER = StrictDecoder(Body)


def test_a_value_is_read():
    raw = f'{{"ids":["{ID}"],"by_name":{{"a":"{ID}","b":null}}}}'
    assert DECODER.decode(raw.encode()) == Body([UUID(ID)], {"a": UUID(ID), "b": None})
    assert DECODER.decode(b'{"ids":[],"by_name":{},"key":"QQ=="}') == Body([], {}, key=b"A")


@pytest.mark.parametrize(
    "raw",
    [
        f'{{"ids":["{ID}","{ID.upper()}"],"by_name":{{}},"note":"{ID}"}}',
        f'{{"ids":["{ID}"],"by_name":{{"a":"{ID.replace("-", "")}"}}}}',
        f'{{"ids":[],"ids":["{ID}"],"by_name":{{}}}}',
        f'{{"ids":[],"by_name":{{"a":"{ID}","a":null}}}}',
        '{"ids":[],"by_name":{},"more":1}',
        '{"ids":[],"by_name":{},"key":"QR=="}',
        '{"ids":[],"by_name":{},"key":"QQ"}',
        '{"ids":[]}',
        "[" * 100_000,
    ],
)
def test_anything_else_is_refused(raw):
    with pytest.raises(ValueError):
        DECODER.decode(raw.encode())


class Chosen(msgspec.Struct, forbid_unknown_fields=True, tag="a"):
    word: Literal["one"] = "one"
    number: Literal[1] = 1
    words: dict[Literal["two"], int] = {}


@pytest.mark.parametrize(
    ("kind", "raw", "told"),
    [
        (Body, '{"ids":["hunter2"],"by_name":{}}', "Invalid UUID - at `$.ids[0]`"),
        (Chosen, '{"type":"hunter2"}', "Invalid value - at `$.type`"),
        (Chosen, '{"type":"a","word":"hunter2"}', "Invalid enum value - at `$.word`"),
        (Chosen, '{"type":"a","word":"hunter2 - at `$.x`"}', "Invalid enum value - at `$.word`"),
        (Chosen, '{"type":"a","word":"hunter2\\n\\"\'"}', "Invalid enum value - at `$.word`"),
        (Chosen, '{"type":"a","number":72}', "Invalid enum value - at `$.number`"),
        (Chosen, '{"type":"a","words":{"hunter2":1}}', "Invalid enum value - at `key` in `$.words`"),
        (Literal["one"], '"hunter2"', "Invalid enum value"),
    ],
)
def test_the_message_quotes_no_value(kind, raw, told):
    with pytest.raises(ValueError) as caught:
        StrictDecoder(kind).decode(raw.encode())
    assert str(caught.value) == told


def test_a_text_of_the_wrong_form_is_told_in_words():
    kind = msgspec.defstruct("Named", [("name", Name)])
    with pytest.raises(ValueError) as caught:
        StrictDecoder(kind).decode(b'{"name":"a\\tb"}')
    assert str(caught.value) == "This text holds characters that it may not hold - at `$.name`"
