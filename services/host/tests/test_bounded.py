"""What a program may cost the others; measured in processor time, so that a busy machine fails no test."""

from __future__ import annotations

import os
import time

import pytest

from bothy_host import bounded
from bothy_host.bounded import BoundedScreen

PIECE = 64 * 1024
HOSTILE = {
    "reset": b"\x1bc",
    "repeat": b"x\x1b[65535b",
    "132 columns": b"\x1b[?40h\x1b[?3h\x1b[?3l",
    "alignment": b"\x1b#8",
    "both screens": b"\x1b[?1049h\x1b[?1049l",
    "erase": b"\x1b[2J",
    "scroll": b"\x1b[9999S\x1b[9999T",
}


def cost_of(screen: BoundedScreen, output: bytes) -> float:
    began = time.thread_time()
    screen.feed(output)
    return time.thread_time() - began


@pytest.mark.parametrize("size", [(80, 24), (480, 135)])
@pytest.mark.parametrize("what", HOSTILE)
def test_no_output_costs_the_others_much(what, size):
    screen = BoundedScreen(256 * 1024)
    screen.resize(*size)
    screen.feed(b"\x1b[?2004hbefore\r\n" * 5000)
    output = HOSTILE[what] * (PIECE // len(HOSTILE[what]))
    spent = [cost_of(screen, output) for _ in range(10)]
    assert max(spent) < 1.0, "a piece, and giving up"
    assert sum(spent) < 2.0
    screen.feed(b"\x1bcafter")
    assert b"after" in screen.repaint()


def test_who_is_given_up_is_shown_as_it_was_and_goes_on(caplog):
    screen = BoundedScreen(256 * 1024)
    screen.resize(80, 24)
    screen.feed(b"\x1b[?2004h\x1b[31mbefore\r\n")
    screen.feed(b"x\x1b[65535b\x1b[2J\x1b[H" * 9000 + b"\x1b[?1h")
    assert not screen._emulated
    assert "without the terminal emulator" in caplog.text
    screen.feed(b"after")
    repaint = screen.repaint()
    assert repaint.startswith(b"\x1bc")
    assert repaint.endswith(b"after")
    assert b"\x1b[?2004h" in repaint
    assert b"\x1b[?1h" in repaint


@pytest.mark.parametrize(
    "output",
    [
        b"\x1b[31mword\x1b[m and \x1b[1;44mmore\x1b[m\r\n" * 2000,
        b"y\r\n" * 20_000,
        b"\x1b[5;5H\x1b[38;2;1;2;3mx\x1b[K" * 3000,
        "漢字 \U0001f600 e\u0301".encode() * 3000,
        os.urandom(PIECE),
    ],
)
def test_useful_output_never_gives_up(output):
    screen = BoundedScreen(256 * 1024)
    screen.resize(200, 50)
    for _ in range(30):
        screen.feed(output)
    assert screen._emulated


def test_bytes_one_by_one_do_not_give_up():
    screen = BoundedScreen(256 * 1024)
    for byte in b"a line\r\n" * 500:
        screen.feed(bytes([byte]))
    assert screen._emulated


def test_a_storm_of_sizes_costs_one(monkeypatch):
    screen = BoundedScreen(256 * 1024)
    passed_on = []
    monkeypatch.setattr(type(screen._screen), "resize", lambda self, *size: passed_on.append(size))
    for columns in range(20, 500):
        screen.resize(columns, 30)
    screen.feed(b"x")
    screen.repaint()
    assert passed_on == [(499, 30)]


def test_a_terminal_larger_than_any_is_not_emulated():
    screen = BoundedScreen(256 * 1024)
    screen.feed(b"before\r\n")
    screen.resize(1000, 1000)
    assert not screen._emulated
    assert b"before" in screen.repaint()
    assert bounded._MOST_CELLS >= 480 * 135


def test_a_repaint_of_the_largest_screen_costs_little():
    screen = BoundedScreen(256 * 1024)
    screen.resize(480, 135)
    for row in range(135):
        screen.feed(b"".join(b"\x1b[38;2;%d;%d;9mx" % (row, column % 256) for column in range(480)) + b"\r\n")
    screen.feed(b"\x1b[44m\x1b[2J")
    screen.repaint()
    began = time.thread_time()
    assert len(screen.repaint()) <= 256 * 1024
    assert time.thread_time() - began < 1.0


def test_long_lines_behind_many_empty_ones_are_found_soon():
    screen = BoundedScreen(256 * 1024)
    screen.resize(80, 24)
    screen.feed(b"\r\n" * 100_000)
    for row in range(66):
        screen.feed(
            b"".join(b"\x1b[38;2;%d;9;9;48;2;%d;7;7mx" % (column + row, column) for column in range(80)) + b"\r\n"
        )
    screen.feed(b"\r\n" * 24)
    began = time.thread_time()
    screen.repaint()
    assert time.thread_time() - began < 1.0
