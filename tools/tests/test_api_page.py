"""Schemas say exactly what the decoder takes; words are those of the code."""

from __future__ import annotations

import base64
from typing import Annotated

import jsonschema_rs
import msgspec
import pytest
from msgspec import Meta

from api_page import attribute_docs, prose, schemas


def schema_of(kind: object) -> dict:
    """The schema of a field of this type."""
    made = schemas([msgspec.defstruct("Body", [("field", kind)])], {})
    return made["Body"]["properties"]["field"]


@pytest.mark.parametrize(
    ("least", "most"),
    [(0, None), (1, None), (32, 32), (64, 64), (16, 16), (0, 1), (0, 2), (0, 3), (1, 64), (0, 65), (0, 66)],
)
@pytest.mark.parametrize("optional", [False, True])
def test_bytes_have_exactly_so_many(least: int, most: int | None, optional: bool) -> None:
    kind = Annotated[bytes, Meta(min_length=least, max_length=most)]
    validator = jsonschema_rs.Draft202012Validator(schema_of(kind | None if optional else kind))
    decoder = msgspec.json.Decoder(kind)
    for length in range(70):
        text = base64.b64encode(b"\xff" * length).decode()
        try:
            decoder.decode(f'"{text}"')
            taken = True
        except msgspec.ValidationError:
            taken = False
        # Fewer than the least by one or two are as many digits, and the schema says nothing of them.
        assert validator.is_valid(text) is taken or least - 2 <= length < least, length


def test_bytes_have_one_spelling() -> None:
    validator = jsonschema_rs.Draft202012Validator(schema_of(bytes))
    assert all(map(validator.is_valid, ["", "QQ==", "QUE=", "QUFB"]))
    assert not any(map(validator.is_valid, ["QR==", "QUF=", "QQ", "QQ=", "Q Q=", "QQ==\n", "Q-==", "QQ==QQ=="]))


def test_patterns_are_of_the_dialect_of_the_standard() -> None:
    assert schema_of(Annotated[str, Meta(pattern=r"\A[a-z]+\Z")])["pattern"] == "^[a-z]+$"


def test_docstrings_become_words() -> None:
    assert prose("One ``a`` of\n    :class:`~x.Y`.\n\n    Two.") == "One `a` of `Y`.\n\nTwo."
    source = 'class A:\n    b: int\n    """Below b."""\n    c = 1\n    d: str\n    """Below d."""\n'
    assert attribute_docs(source) == {"A.b": "Below b.", "A.d": "Below d."}
