"""A repaint, read by a fresh terminal, must leave it as the output itself would have."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothy_host.emulated import EmulatedScreen
from bothy_host.emulator import Emulator, EmulatorError
from bothy_host.repaint import RESET, strip_queries

LIMIT = 256 * 1024
TO_MAIN = b"\x1b[?1049l"
FULL_SCREEN = b"\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?1h\x1b[?25l"
SAYS_NOTHING = re.compile(rb"\x1b[()*+]B| +(?=\r\n|\x1b\[\d+;\d+H)")
LINES = re.compile(rb"\x1b\[[\d;]*m|\r\n")
MODES_OF_IT = (1049, 1000, 1006, 2004, 1)


def screen(*output: bytes, size: tuple[int, int] = (40, 8), limit: int = LIMIT) -> EmulatedScreen:
    made = EmulatedScreen(limit)
    made.resize(*size)
    for part in output:
        made.feed(part)
    return made


def everything(shown: EmulatedScreen) -> list[object]:
    """All that can be seen of a terminal, and what comes to light when the alternate screen is left."""
    emulator = shown._emulator
    seen: list[object] = [_bytes(emulator.paint_screen(modes=True)), emulator.title, emulator.colours]
    seen += [emulator.paint_blanks(), emulator.cursor_shape, emulator.cursor, emulator.size, emulator.alternate]
    if emulator.alternate:
        emulator = emulator.copy()
        emulator.feed(TO_MAIN)
        seen.append(_bytes(emulator.paint_screen(modes=True)))
    history = emulator.paint_history(emulator.history) if emulator.history else b""
    return [*seen, LINES.sub(b"", history).rstrip()]  # how long the lines were is no promise


def _bytes(painted: bytes) -> bytes:
    """Without what says nothing: the choice of ASCII where it is ASCII anyway, blanks at the end of a row."""
    return SAYS_NOTHING.sub(b"", painted)


@pytest.mark.parametrize(
    "output",
    [
        b"hello",
        b"a line\r\n" * 30 + b"$ ",
        b"\x1b[31;1mred\x1b[0m \x1b[48;2;1;2;3mblue\x1b[4:3mcurly",
        b"\x1b[44m\x1b[2J\x1b[3;7Hx",
        b"w" * 40,
        b"w" * 100,
        "漢字 e\u0301 \U0001f600\r\n".encode() * 12,
        b"\x1b[2;5r\x1b[3;4Hin a region\x1b[?6h\x1b[2;2H",
        b"\x1b[?69h\x1b[5;20s\x1b[2;5r\x1b[?6h\x1b[2;2Hx",
        b"\x1b(0lqqk\x1b(B \x1b)0\x0eqq",
        b"\x1b[?7l\x1b[4h\x1b[20h\x1b=\x1b[?1l\x1b[?5h",
        b"\x1b[3g\x1b[5G\x1bH\ttab",
        b"\x1b]2;a title\x07\x1b]10;#102030\x07\x1b]4;3;#010203\x07\x1b[5 q",
        b"\x1b[>4;2m\x1b[>5u\x1b]8;;https://example.com/\x1b\\link",
        b"main\r\n" * 20 + b"\x1b[33mgold\x1b[?1049h\x1b[m\x1b[2;3Halternate",
        b"\x1b[31m\x1b(0main\x1b[?1049h\x1b(B\x1b[mplain\x1b[2;4r\x1b[?6h",
        b"main\x1b[?1049h" + FULL_SCREEN + b"\x1b[2J\x1b[Hvi",
    ],
)
def test_a_repaint_makes_the_same_terminal(output):
    shown = screen(output)
    assert everything(screen(shown.repaint())) == everything(shown)


def test_br32_modes_and_the_main_screen_survive_a_megabyte():
    shown = screen(b"the shell\r\n$ full", FULL_SCREEN, b"\x1b[Hline\r\n\x1b[3;1Hmore" * 70_000)
    again = screen(shown.repaint())
    assert all(again._emulator.mode(mode) for mode in MODES_OF_IT)
    assert not again._emulator.mode(25)
    again.feed(TO_MAIN)
    assert b"the shell\r\n$ full" in again.repaint()


def test_nothing_printed_is_nothing_painted():
    assert screen().repaint() == b""
    assert screen(b"", b"").repaint() == b""
    assert screen(b"x").repaint().startswith(RESET)


PIECES = [
    *(b"\x1b[%dm" % number for number in (0, 1, 3, 4, 7, 31, 44, 97)),
    b"\x1b[38;5;200m",
    b"\x1b[48;2;9;8;7m",
    *(b"\x1b[%d%s" % (count, bytes([final])) for count in (1, 3) for final in b"ABCDEFGLMPSTX@`d"),
    b"\x1b[2;3H",
    b"\x1b[6;19H",
    b"\x1b[2J",
    b"\x1b[K",
    b"\x1b[J",
    b"\x1b[2;5r",
    b"\x1b[r",
    b"\x1b[2;3H\x1b7",
    b"\x1b8",
    b"\x1bM",
    b"\x1bD",
    b"\x1bE",
    b"\x1bH",
    b"\x1b=",
    b"\x1b>",
    b"\x1b(0",
    b"\x1b(B",
    b"\x1b)0",
    b"\x0e",
    b"\x0f",
    b"\r\n",
    b"\r\n" * 9,
    b"\t",
    b"\x08",
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    *(
        b"\x1b[?%d%s" % (mode, end)
        for mode in (1, 5, 6, 7, 25, 1000, 1002, 1003, 1004, 1006, 2004)
        for end in (b"h", b"l")
    ),
    b"\x1b[4h",
    b"\x1b[4l",
    b"\x1b[4 q",
    b"\x1b[0 q",
    b"\x1b]2;title\x07",
    b"\x1b]11;#001122\x1b\\",
    b"\x1b[6n",
    b"\x1b[c",
    b"\x1b]10;?\x07",
    b"plain",
    b"a line that is longer than the screen is wide",
    "\x0f\x1b(B漢字\x1b[C".encode(),
    "grün €".encode(),
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.floats(0, 1))
def test_a_repaint_at_any_byte_and_the_output_from_there_make_the_same_terminal(pieces, at):
    output = b"".join(pieces)
    cut = int(len(output) * at)
    before = screen(output[:cut], size=(20, 6))
    repaint = before.repaint()
    whole = screen(output, size=(20, 6))
    assert everything(screen(repaint, output[cut:], size=(20, 6))) == everything(whole)


def test_what_a_terminal_would_answer_is_gone():
    shown = screen(b"a\x1b[6nb\x1b]10;?\x07c\x1b[?2048h\x1b[c")
    repaint = shown.repaint()
    assert b"abc" in repaint
    assert b"2048" not in repaint
    assert strip_queries(repaint) == repaint


def test_a_title_asks_nothing():
    repaint = screen("\x1b]2;t\x9c\x9b6n\x07x".encode()).repaint()
    assert b"\xc2\x9c" not in repaint
    assert b"\x1b]2;t  6n\x1b\\" in repaint


def test_a_query_whose_end_is_still_to_come_stays_the_programs_own():
    shown = screen(b"x\x1b[6")
    assert shown.repaint().endswith(b"\x1b[6")
    assert everything(screen(shown.repaint(), b";5Hy")) == everything(screen(b"x\x1b[6;5Hy"))


def test_a_character_cut_in_two_is_whole_again():
    shown = screen(b"\xe2\x82")
    assert "€".encode() in screen(shown.repaint(), b"\xac").repaint()


def test_a_sequence_without_end_is_given_up():
    shown = screen(b"before\x1b]2;" + b"x" * 20_000, limit=8192)
    repaint = shown.repaint()
    assert len(repaint) < 8192
    assert b"before" in repaint
    shown.feed(b"after")
    assert b"after" in shown.repaint()


def test_the_oldest_lines_go_when_there_is_no_room():
    shown = screen(
        b"".join(b"\x1b[3%dmline %d\x1b[m\r\n" % (number % 8, number) for number in range(20_000)), limit=8192
    )
    repaint = shown.repaint()
    assert 4096 < len(repaint) <= 8192
    assert b"line 19999" in repaint
    assert b"line 19800" in repaint
    assert b"line 0\x1b" not in repaint


@pytest.mark.parametrize("alternate", [b"", b"main\x1b[?1049h"])
def test_a_screen_too_colourful_for_the_room_keeps_its_lower_rows_in_place(alternate):
    cells = b"".join(b"\x1b[%d;%dH\x1b[38;2;%d;%d;%dmx" % (y, x, x, y, x) for y in range(1, 25) for x in range(1, 81))
    shown = screen(alternate + FULL_SCREEN[8:] + cells + b"\x1b[24;1H\x1b[mlast row", size=(80, 24), limit=16384)
    repaint = shown.repaint()
    assert len(repaint) <= 16384
    again = screen(repaint, size=(80, 24))
    assert again._emulator.cursor == shown._emulator.cursor
    assert again._emulator.alternate == shown._emulator.alternate
    assert again._emulator.mode(2004)
    last = again._emulator.paint_screen(modes=False).split(b"\r\n")[23]
    assert b"last row" in last


def test_it_is_painted_for_the_size_of_who_asks():
    shown = screen(b"a line that is longer than the new screen is wide\r\n" * 3)
    shown.resize(20, 5)
    assert everything(screen(shown.repaint(), size=(20, 5))) == everything(shown)


def test_a_limit_too_small_for_what_must_be_set_is_kept_all_the_same():
    colours = b"".join(b"\x1b]4;%d;#010203\x07" % number for number in range(256))
    assert len(screen(colours + b"text", limit=4096).repaint()) <= 4096


def test_tabs_are_set_only_where_a_program_changed_them():
    assert b"\x1bH" not in screen(b"x", size=(132, 8)).repaint()
    shown = screen(b"\x1b[3g\x1b[5G\x1bH", size=(132, 8))
    assert b"\x1b[3g\x1b[5G\x1bH" in shown.repaint()


def test_the_keypad_is_told_in_the_way_that_every_terminal_knows():
    repaint = screen(b"\x1b=").repaint()
    assert b"\x1b=" in repaint
    assert b"?66" not in repaint


def test_the_first_sixteen_colours_are_asked_for_by_name():
    repaint = screen(b"\x1b[31mr\x1b[97mw\x1b[42mg\x1b[104mb\x1b[38;5;16mx\x1b[0;41m\x1b[K").repaint()
    for colour in (b"\x1b[31m", b"\x1b[97m", b"\x1b[42m", b"\x1b[104m", b"\x1b[38;5;16m", b"\x1b[41m"):
        assert colour in repaint


def test_pictures_cost_nothing_and_files_are_not_read():
    picture = b"\x1b_Ga=T,f=32,s=100,v=100,t=f;L2V0Yy9wYXNzd2Q=\x1b\\"
    assert everything(screen(b"x" + picture)) == everything(screen(b"x"))


@settings(deadline=None)
@given(st.binary(max_size=400), st.integers(1, 60), st.integers(1, 20))
def test_any_bytes_and_sizes_do_no_harm(output, columns, rows):
    shown = screen(output)
    shown.resize(columns, rows)
    shown.feed(output[::-1])
    repaint = shown.repaint()
    assert len(repaint) < LIMIT
    screen(repaint, size=(columns, rows)).repaint()


def test_a_fault_of_the_emulator_costs_the_picture_and_nothing_else(monkeypatch, caplog):
    shown = screen(b"here")

    def refuse(self, *, modes):
        raise EmulatorError("format failed: -1")

    with monkeypatch.context() as patched:
        patched.setattr(Emulator, "paint_screen", refuse)
        assert shown.repaint() == RESET
    assert "no repaint" in caplog.text
    assert b"here" in shown.repaint()


def test_a_state_that_cannot_be_copied_is_painted_without_what_is_behind_it():
    shown = screen("\x1b[?1049h\n\x1b[99C\x1bg\u4f60".encode(), size=(80, 24))
    shown.resize(1, 25)
    shown.feed(b"x")
    repaint = shown.repaint()
    assert b"\x1b[?1049h" in repaint
    assert b"x" in repaint


def test_a_string_without_its_end_asks_nothing():
    assert b"\xc2" not in screen("hi\x1b]2;t\x9c\x9b6n".encode()).repaint()
