"""One session's screen, and what becomes of it when the emulator's process is late, too slow or dead."""

from __future__ import annotations

import os
import signal

import pytest

from bothy_host import session_screen
from bothy_host.bounded import BoundedScreen
from bothy_host.emulated import EmulatedScreen
from bothy_host.emulator_link import started
from bothy_host.session_screen import SessionScreen
from bothy_host.tail import TailScreen

LIMIT = 64 * 1024
PATIENCE = 20.0
OUTPUT = b"the shell\r\n" * 50 + b"\x1b[?1049h\x1b[?2004h\x1b[31mfull\x1b[6n"


@pytest.fixture
async def link():
    async with started() as made:
        yield made


@pytest.fixture
def pid(link, emulators):
    (made,) = emulators()
    return made


@pytest.fixture
def make(link):
    return lambda patience=PATIENCE: SessionScreen(link.new(LIMIT), LIMIT, patience)


def tail_of(output: bytes) -> bytes:
    tail = TailScreen(LIMIT)
    tail.feed(output)
    return tail.repaint()


async def test_it_is_the_emulators(make):
    screen, here = make(), EmulatedScreen(LIMIT)
    assert await screen.repaint() == b""
    for each in (screen, here):
        each.resize(100, 30)
        each.feed(OUTPUT)
    assert await screen.repaint() == here.repaint()


async def test_without_an_emulator_the_end_of_the_output_is_shown():
    screen = SessionScreen(None, LIMIT, PATIENCE)
    screen.resize(100, 30)
    assert await screen.repaint() == b""
    screen.feed(OUTPUT)
    assert not screen.behind
    assert await screen.repaint() == tail_of(OUTPUT)


async def test_when_the_process_dies_the_end_of_the_output_is_shown(make, link, pid):
    screen = make()
    screen.feed(OUTPUT)
    os.kill(pid, signal.SIGSEGV)
    assert await screen.repaint() == tail_of(OUTPUT)
    await link.gone
    screen.resize(80, 24)
    screen.feed(b"after")
    assert await screen.repaint() == tail_of(OUTPUT + b"after")
    assert await make().repaint() == b""


async def test_when_a_picture_is_late_the_end_of_the_output_is_shown_this_time(make, pid):
    screen = make(0.01)
    screen.feed(OUTPUT)
    os.kill(pid, signal.SIGSTOP)
    assert await screen.repaint() == tail_of(OUTPUT)
    os.kill(pid, signal.SIGCONT)
    screen._patience = PATIENCE
    assert await screen.repaint() != tail_of(OUTPUT)


async def test_who_does_not_wait_for_the_process_goes_on_alone(make, link, pid, caplog):
    fast, other = make(), make()
    other.feed(OUTPUT)
    os.kill(pid, signal.SIGSTOP)
    for _ in range(1000):
        fast.feed(b"y\n" * 32_768)
    assert link.waiting < 2 * session_screen._FAR_TOO_MANY
    os.kill(pid, signal.SIGCONT)
    assert b"\x1b[?1049h" in await other.repaint(), "nobody else's emulator is lost"
    assert not fast.emulated
    assert (await fast.repaint()).endswith(b"y\n")
    assert caplog.text.count("does not keep up") == 1


async def test_who_waits_too_long_for_it_goes_on_alone(make, link, pid, eventually):
    screen = make(0.01)
    os.kill(pid, signal.SIGSTOP)
    while not screen.behind:
        screen.feed(b"x" * 60_000)
    await eventually(lambda: not screen.behind)
    assert not screen.emulated
    assert not link.gone.done()
    assert (await screen.repaint()).endswith(b"x")


async def test_who_prints_faster_than_it_reads_goes_at_its_pace(make, link, eventually):
    screen = make()
    for _ in range(160):
        screen.feed(b"y\r\n" * 20_000)
        assert link.waiting < 2 * session_screen._MOST_WAITING
        await eventually(lambda: not screen.behind)
    screen.feed(b"end")
    assert screen.emulated
    assert b"end" in await screen.repaint()


async def test_who_prints_little_does_not_wait_behind_who_prints_much(make, pid):
    fast, other = make(), make()
    os.kill(pid, signal.SIGSTOP)
    while not fast.behind:
        fast.feed(b"x" * 60_000)
    other.feed(b"little")
    assert not other.behind


@pytest.mark.parametrize("make_one", [BoundedScreen, EmulatedScreen, TailScreen])
def test_all_paint_what_was_printed(make_one):
    screen = make_one(LIMIT)
    assert screen.repaint() == b""
    screen.resize(80, 24)
    screen.feed(b"\x1b[?2004h\x1b[3")
    screen.feed(b"1mred\x1b[6n")
    repaint = screen.repaint()
    assert repaint.startswith(b"\x1bc")
    assert b"red" in repaint
    assert b"\x1b[?2004h" in repaint
    assert b"\x1b[6n" not in repaint
