"""What the tail shows, seen through the emulator where that says more than bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothy_host.emulated import EmulatedScreen
from bothy_host.emulator import Emulator
from bothy_host.repaint import RESET
from bothy_host.tail import TailScreen

LIMIT = 4096
TAIL = LIMIT - 2050


def tail(*output: bytes) -> bytes:
    screen = TailScreen(LIMIT)
    for part in output:
        screen.feed(part)
    return screen.repaint()


def test_everything_is_not_cut():
    assert tail(b"") == b""
    assert tail(b"abc\n", b"def") == RESET + b"abc\ndef"


@pytest.mark.parametrize(
    "cut_in_two", [b"\x1b[31m", b"\x1b]0;a title\x07", b"\x1b(0", "€".encode(), b"\x1b]8;;https://x/\x1b\\"]
)
def test_a_cut_begins_where_a_terminal_may_begin(cut_in_two):
    kept = tail(cut_in_two + b"x" * TAIL).rstrip(b"x")
    for left in range(1, len(cut_in_two)):
        assert tail(cut_in_two + b"x" * (TAIL - left)).rstrip(b"x") == kept


def test_a_line_whose_beginning_is_missing_is_left_out():
    assert tail(b"??" + b"half a line\n" + b"x" * (TAIL - 12)) == RESET + b"x" * (TAIL - 12)


def test_modes_that_lie_before_the_tail_hold_in_it():
    program = b"\x1b[?1049h\x1b[?1000;1006h\x1b[?2004h\x1b[?1h\x1b[?25l\x1b=\x1b(0\x1b[2;20r\x1b[4 q\x1b]2;title\x07\x1b[1;31m"
    repainted = tail(program, b"\x1b[3;3Hx" * 200_000)
    assert len(repainted) <= LIMIT
    for part in (
        b"\x1b[?1049h",
        b"\x1b[?2004h",
        b"\x1b[?1006h",
        b"\x1b[?25l",
        b"\x1b=",
        b"\x1b(0",
        b"\x1b[2;20r",
        b"\x1b[4 q",
    ):
        assert part in repainted
    assert b"\x1b]2;title\x07" in repainted
    assert b"\x1b[1;31m" in repainted


@pytest.mark.parametrize("step", [1000, 64 * 1024])
def test_hostile_output_makes_no_repaint_beyond_its_bound(step):
    modes = b"".join(b"\x1b[?%s%dh" % (b"7" * 4, number) for number in range(1000))
    long = b"".join(b"\x1b[?%sh\x1b[%sm" % (b"%d" % number * 20_000, b"1;" * 20_000) for number in range(1, 60))
    output = modes + b"\x1b[38;5;1m" * 1000 + b"\x1b]2;" + b"t" * 256 + b"\x07" + long + b"line\r\n" * 2000
    assert len(tail(*(output[start : start + step] for start in range(0, len(output), step)))) <= LIMIT


PIECES = [
    *(b"\x1b[?%d%s" % (mode, end) for mode in (1, 5, 25, 1000, 1002, 1006, 2004) for end in (b"h", b"l")),
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    b"\x1b=",
    b"\x1b>",
    b"\x1b[2;5r",
    b"\x1b[r",
    b"\x1b(0",
    b"\x1b(B",
    b"\x1b[m",
    b"\x1b[31m",
    b"\x1b[1;44m",
    b"\x1b]2;title\x07",
    b"\x1bc",
    "ä€漢字".encode(),
    b"text\r\n",
    b"x" * 900,
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60), st.integers(1, 700))
def test_modes_and_colours_are_those_of_the_whole_output(pieces, step):
    output = b"".join(pieces)
    screen = TailScreen(LIMIT)
    for start in range(0, len(output), step):
        screen.feed(output[start : start + step])
    repainted = screen.repaint()
    assert len(repainted) <= LIMIT
    assert state(repainted) == state(output)


def state(output: bytes) -> list[object]:
    shown = EmulatedScreen(1024 * 1024)
    shown.resize(80, 24)
    shown.feed(output + b"\x1b[2J\x1b[H")
    emulator: Emulator = shown._emulator
    return [emulator.paint_screen(modes=True).replace(b"\x1b(B", b""), emulator.paint_blanks(), emulator.title]
