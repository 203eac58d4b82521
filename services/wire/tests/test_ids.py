"""One spelling per id."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.ids import parse_id


@given(st.uuids())
def test_the_canonical_spelling_is_read(value):
    assert parse_id(str(value)) == value


@given(st.uuids(version=4))
def test_no_other_spelling_is_read(value):
    text = str(value)
    for other in (text.upper(), value.hex, f"{{{text}}}", value.urn, text + "\n", " " + text, text[:-1]):
        if other != text:
            with pytest.raises(ValueError):
                parse_id(other)


@pytest.mark.parametrize("text", ["", "0" * 36, "\u0660" * 8 + str(UUID(int=0))[8:]])
def test_what_is_no_id_is_refused(text):
    with pytest.raises(ValueError):
        parse_id(text)


@given(st.text(max_size=40))
def test_random_text_is_refused(text):
    with pytest.raises(ValueError):
        parse_id(text)
