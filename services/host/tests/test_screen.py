from __future__ import annotations

import sys

import pytest

from bothy_host.bounded import BoundedScreen
from bothy_host.emulated import EmulatedScreen
from bothy_host.screen import best
from bothy_host.tail import TailScreen


def test_the_emulator_is_best():
    assert best() is BoundedScreen


def test_without_the_extra_the_tail_is_shown_and_the_log_says_so(monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setitem(sys.modules, "bothy_host.bounded", None)
    assert best() is TailScreen
    assert "extra 'screen'" in caplog.text


@pytest.mark.parametrize("make", [BoundedScreen, EmulatedScreen, TailScreen])
def test_both_paint_what_was_printed(make):
    screen = make(64 * 1024)
    assert screen.repaint() == b""
    screen.resize(80, 24)
    screen.feed(b"\x1b[?2004h\x1b[3")
    screen.feed(b"1mred\x1b[6n")
    repaint = screen.repaint()
    assert repaint.startswith(b"\x1bc")
    assert b"red" in repaint
    assert b"\x1b[?2004h" in repaint
    assert b"\x1b[6n" not in repaint
