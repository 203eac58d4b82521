"""One spelling per id."""

from __future__ import annotations

from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.ids import parse_id, uuid7


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


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1))
def test_a_made_id_is_a_uuid7_that_holds_all_it_was_given(millis, random):
    made = uuid7(millis, random)
    assert (made.version, made.variant) == (7, RFC_4122)
    assert made.int >> 80 == millis
    assert (made.int >> 64 & 0xFFF) << 62 | made.int & (2**62 - 1) == random
    assert parse_id(str(made)) == made


def test_ids_sort_by_their_time():
    assert uuid7(1, 2**74 - 1) < uuid7(2, 0)


@pytest.mark.parametrize(("millis", "random"), [(-1, 0), (2**48, 0), (0, -1), (0, 2**74)])
def test_what_a_uuid7_cannot_hold_is_refused(millis, random):
    with pytest.raises(ValueError):
        uuid7(millis, random)
