import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_device.modes import Modes

FRAGMENTS = [
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    b"\x1b[?2004h",
    b"\x1b[?25l",
    b"\x1b[?1000;1006h",
    b"\x1bc",
    b"text",
    "\u20ac".encode(),
]


def after(*pieces: bytes) -> Modes:
    modes = Modes()
    for each in pieces:
        modes.feed(each)
    return modes


def test_nothing_to_restore_after_plain_output():
    assert after(b"ls\r\n\x1b[31mred\x1b[0m\r\n").restore() == b""


def test_an_editor_that_left_by_itself_leaves_nothing():
    assert after(b"\x1b[?1049h\x1b[?2004h ... \x1b[?2004l\x1b[?1049l").restore() == b""


def test_what_was_left_on_goes_off_and_the_screen_last():
    assert after(b"\x1b[?1049h\x1b[?2004h\x1b[?1000;1006h\x1b[?25l").restore() == (
        b"\x1b[?2004l\x1b[?1000l\x1b[?1006l\x1b[?25h\x1b[?1049l\x1b[0m\x1b>"
    )


@pytest.mark.parametrize("number", [47, 1047, 1049])
def test_a_program_that_holds_the_alternate_screen_is_known(number):
    assert after(b"\x1b[?%dh" % number).full_screen
    assert not after(b"\x1b[?%dh" % number, b"\x1b[?%dl" % number).full_screen
    assert not after(b"\x1b[?2004h").full_screen


def test_a_hard_reset_forgets():
    assert after(b"\x1b[?1049h\x1bc").restore() == b""


@pytest.mark.parametrize(
    "unfinished",
    [
        b"\x1b",
        b"\x1b[",
        b"\x1b[?104",
        b"\x1b[38;5;",
        b"\x1b]0;title",
        b"\x1bP+q",
        b"\x1b(",
        b"\xe2",
        b"\xe2\x82",
        b"\xf0\x9f\x92",
    ],
)
def test_unfinished_output_is_known(unfinished):
    assert after(b"x\r\n").between_sequences
    assert not after(b"x" + unfinished).between_sequences


@pytest.mark.parametrize(
    "finished", [b"\x1b[0m", b"\x1b]0;title\x07", b"\x1b]0;title\x1b\\", b"\x1bc", "\u20ac".encode(), b"\xff"]
)
def test_finished_output_is_known(finished):
    assert after(b"x", finished).between_sequences


def test_an_unfinished_sequence_is_cancelled_first():
    assert after(b"\x1b[?1049h\x1b]0;ti").restore().startswith(b"\x18\x1b[?1049l")


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8), st.data())
def test_every_chunking_gives_the_same(fragments, data):
    whole = b"".join(fragments)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    pieces = [whole[a:b] for a, b in itertools.pairwise([0, *cuts, len(whole)])]
    assert after(*pieces).restore() == after(whole).restore()
    assert after(*pieces).between_sequences == after(whole).between_sequences
