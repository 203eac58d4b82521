"""A real process, and what becomes of sessions when it is late or dies."""

from __future__ import annotations

import gc
import os
import re
import signal
import time
from pathlib import Path

import pytest

from bothy_host import remote_screen
from bothy_host.bounded import BoundedScreen
from bothy_host.emulated import EmulatedScreen
from bothy_host.remote_screen import EmulatorProcess, Kind, RemoteScreen, screens
from bothy_host.tail import TailScreen

LIMIT = 64 * 1024
OUTPUT = b"the shell\r\n" * 50 + b"\x1b[?1049h\x1b[?2004h\x1b[31mfull\x1b[6n"


@pytest.fixture
def process():
    made = EmulatorProcess(20.0)
    yield made
    made.stop()


def test_the_process_paints_as_the_emulator_does(process):
    screen, other, here = RemoteScreen(process, LIMIT), RemoteScreen(process, LIMIT), EmulatedScreen(LIMIT)
    for each in (screen, here):
        each.resize(100, 30)
        each.feed(OUTPUT)
    other.feed(b"another")
    assert screen.repaint() == here.repaint()
    assert b"another" in other.repaint()
    assert RemoteScreen(process, LIMIT).repaint() == b""


def test_when_it_dies_the_end_of_the_output_is_shown(process, caplog):
    screen, tail = RemoteScreen(process, LIMIT), TailScreen(LIMIT)
    for each in (screen, tail):
        each.feed(OUTPUT)
    os.kill(process._process.pid, signal.SIGSEGV)
    assert screen.repaint() == tail.repaint()
    assert not process.alive
    assert process._process.returncode is not None, "nothing is left behind"
    assert "sessions go on without it" in caplog.text
    screen.resize(80, 24)
    screen.feed(b"after")
    assert screen.repaint().endswith(b"after")
    assert RemoteScreen(process, LIMIT).repaint() == b""


def test_when_it_is_late_its_answer_is_for_nobody_else(process):
    screen, other = RemoteScreen(process, LIMIT), RemoteScreen(process, LIMIT)
    screen.feed(OUTPUT)
    other.feed(b"another")
    os.kill(process._process.pid, signal.SIGSTOP)
    process._patience = 0.05
    late = screen.repaint()
    os.kill(process._process.pid, signal.SIGCONT)
    assert late.startswith(b"\x1bcthe shell"), "the tail"
    process._patience = 20.0
    assert b"another" in other.repaint()
    assert screen.repaint() != late


def test_who_is_too_fast_for_it_goes_on_alone(process, caplog):
    fast, other = RemoteScreen(process, LIMIT), RemoteScreen(process, LIMIT)
    other.feed(OUTPUT)
    os.kill(process._process.pid, signal.SIGSTOP)
    for _ in range(1000):
        fast.feed(b"y\n" * 32_768)
    assert process.waiting < 2 * remote_screen._FAR_TOO_MANY
    os.kill(process._process.pid, signal.SIGCONT)
    process._patience = 20.0
    assert b"\x1b[?1049h" in process.repaint(other._number), "nobody else's emulator is lost"
    assert fast.repaint().endswith(b"y\n")
    assert caplog.text.count("does not keep up") == 1


def test_who_waits_too_long_for_it_goes_on_alone(process):
    screen = RemoteScreen(process, LIMIT)
    os.kill(process._process.pid, signal.SIGSTOP)
    process._patience = 0.05
    while not screen.behind:
        screen.feed(b"x" * 60_000)
    while screen.behind:
        time.sleep(0.01)
    os.kill(process._process.pid, signal.SIGCONT)
    assert process.alive
    assert screen.repaint().endswith(b"x")


def test_it_has_no_rights_of_its_own(process):
    status = Path(f"/proc/{process._process.pid}/status").read_text()
    own = os.geteuid() or 65534
    assert re.search(rf"^Uid:\s+{own}\s+{own}\s+{own}\s+{own}$", status, re.MULTILINE)
    limits = Path(f"/proc/{process._process.pid}/limits").read_text()
    assert re.search(r"^Max processes +0 ", limits, re.MULTILINE)
    assert re.search(r"^Max file size +0 ", limits, re.MULTILINE)


def test_who_prints_faster_than_it_reads_goes_at_its_pace(process):
    screen = RemoteScreen(process, LIMIT)
    for _ in range(160):
        screen.feed(b"y\r\n" * 20_000)
        assert process.waiting < 2 * remote_screen._MOST_WAITING
        while screen.behind:
            time.sleep(0.001)
    screen.feed(b"end")
    assert process.alive
    assert b"end" in process.repaint(screen._number)


def test_answers_that_nobody_fetched_block_nothing(process):
    screens = [RemoteScreen(process, LIMIT) for _ in range(20)]
    for each in screens:
        each.feed(b"".join(b"\x1b[3%dmx" % (number % 8) for number in range(9000)))
    os.kill(process._process.pid, signal.SIGSTOP)
    process._patience = 0.01
    for each in screens:
        each.repaint()
    os.kill(process._process.pid, signal.SIGCONT)
    process._patience = 20.0
    for _ in range(40):
        screens[0].feed(b"y\r\n" * 20_000)
        while screens[0].behind:
            time.sleep(0.001)
    assert process.alive
    screens[0].feed(b"end")
    assert b"end" in process.repaint(screens[0]._number)


def test_a_screen_that_nobody_has_is_closed(process, monkeypatch):
    told = []
    monkeypatch.setattr(EmulatorProcess, "tell", lambda self, kind, *_: told.append(kind))
    screen = RemoteScreen(process, LIMIT)
    del screen
    gc.collect()
    assert told == [Kind.NEW, Kind.CLOSE]


def test_without_the_extra_the_tail_is_shown_and_the_log_says_so(monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr(remote_screen, "find_spec", lambda name: None)
    with screens(1.0) as make:
        assert make is TailScreen
    assert "extra 'screen'" in caplog.text


def test_a_process_that_does_not_start_is_no_reason_to_have_no_sessions(monkeypatch, caplog):
    monkeypatch.setattr(remote_screen, "_MODULE", "bothy_host.no_such_module")
    with screens(1.0) as make:
        assert make is TailScreen
    assert "the end of the output" in caplog.text


@pytest.mark.parametrize("make", [BoundedScreen, EmulatedScreen, TailScreen])
def test_all_paint_what_was_printed(make):
    screen = make(LIMIT)
    assert screen.repaint() == b""
    screen.resize(80, 24)
    screen.feed(b"\x1b[?2004h\x1b[3")
    screen.feed(b"1mred\x1b[6n")
    repaint = screen.repaint()
    assert repaint.startswith(b"\x1bc")
    assert b"red" in repaint
    assert b"\x1b[?2004h" in repaint
    assert b"\x1b[6n" not in repaint
