from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.printable import printable


def test_escape_sequences_and_invisible_characters_do_not_get_through():
    assert printable("a\x1b[2Jb\x9bc\u200bd\u202ee") == "a [2Jb c d e"


def test_lines_become_one_and_letters_stay():
    assert printable("one\r\n two\nGrüße €") == "one two Grüße €"


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text):
    assert printable(text).isprintable()
