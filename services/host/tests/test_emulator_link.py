"""A real process: what it is told and asked, how it stops, and what it may never do to the service."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from bothy_host import emulator_link
from bothy_host.emulated import EmulatedScreen
from bothy_host.emulator_link import started
from bothy_host.emulator_protocol import HEADER, LENGTH
from bothy_wire.limits import REPAINT_TOTAL_BYTES

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


async def test_the_process_paints_as_the_emulator_does(link):
    screen, other, here = link.new(LIMIT), link.new(LIMIT), EmulatedScreen(LIMIT)
    for each in (screen, here):
        each.resize(100, 30)
        each.feed(OUTPUT)
    other.feed(b"another")
    assert await screen.picture(PATIENCE) == here.repaint()
    assert b"another" in await other.picture(PATIENCE)
    assert await link.new(LIMIT).picture(PATIENCE) == b""


async def test_its_death_is_told_and_every_question_answered(link, pid):
    screen = link.new(LIMIT)
    os.kill(pid, signal.SIGSTOP)
    asked = [asyncio.create_task(screen.picture(PATIENCE)) for _ in range(3)]
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    assert await link.gone == "it ended"
    assert await asyncio.gather(*asked) == [None] * 3
    screen.feed(OUTPUT)
    assert await screen.picture(PATIENCE) is None
    assert screen.waiting == 0


async def test_an_answer_that_is_late_is_for_nobody_else(link, pid):
    screen, other = link.new(LIMIT), link.new(LIMIT)
    screen.feed(OUTPUT)
    other.feed(b"another")
    os.kill(pid, signal.SIGSTOP)
    assert await screen.picture(0.01) is None
    os.kill(pid, signal.SIGCONT)
    assert b"another" in await other.picture(PATIENCE)
    assert b"full" in await screen.picture(PATIENCE)


async def test_one_that_never_answers_is_given_up(link, pid, monkeypatch):
    screen = link.new(LIMIT)
    os.kill(pid, signal.SIGSTOP)
    assert await screen.picture(0.01) is None
    assert not link.gone.done(), "late is not broken"
    monkeypatch.setattr(emulator_link, "_SILENT_S", 0)
    assert await screen.picture(PATIENCE) is None
    assert await link.gone == "it does not answer any more"


@pytest.mark.parametrize("asked", [False, True])
async def test_one_that_says_what_it_was_not_asked_is_given_up(link, pid, asked):
    os.kill(pid, signal.SIGSTOP)
    waiting = asyncio.create_task(link.new(LIMIT).picture(PATIENCE)) if asked else None
    await asyncio.sleep(0)
    link.data_received(LENGTH.pack(REPAINT_TOTAL_BYTES + 1 if asked else 1))
    assert await link.gone == "it said what it was not asked"
    assert waiting is None or await waiting is None


async def test_pictures_may_be_cut_anywhere(link, pid):
    os.kill(pid, signal.SIGSTOP)
    asked = [asyncio.create_task(link.new(LIMIT).picture(PATIENCE)) for _ in range(2)]
    await asyncio.sleep(0)
    for byte in LENGTH.pack(3) + b"one" + LENGTH.pack(0):
        link.data_received(bytes([byte]))
    assert await asyncio.gather(*asked) == [b"one", b""]


async def test_answers_that_nobody_waited_for_block_nothing(link, pid):
    screens = [link.new(LIMIT) for _ in range(20)]
    for each in screens:
        each.feed(b"".join(b"\x1b[3%dmx" % (number % 8) for number in range(9000)))
    os.kill(pid, signal.SIGSTOP)
    assert await asyncio.gather(*(each.picture(0.01) for each in screens)) == [None] * 20
    os.kill(pid, signal.SIGCONT)
    for _ in range(40):
        screens[0].feed(b"y\r\n" * 20_000)
    screens[0].feed(b"end")
    assert b"end" in await screens[0].picture(PATIENCE)


async def test_a_screen_that_nobody_needs_is_closed(link, monkeypatch):
    screen = link.new(LIMIT)
    told = []
    monkeypatch.setattr(link._transport, "write", told.append)
    screen.close()
    assert told == [HEADER.pack(5, screen._number, 0)]


def test_it_has_no_rights_of_its_own(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    own = os.geteuid() or 65534
    assert re.search(rf"^Uid:\s+{own}\s+{own}\s+{own}\s+{own}$", status, re.MULTILINE)
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert re.search(r"^Max processes +0 ", limits, re.MULTILINE)
    assert re.search(r"^Max file size +0 ", limits, re.MULTILINE)


async def test_nothing_is_left_of_it(emulators):
    async with started():
        assert len(emulators()) == 1
    assert emulators() == []


@pytest.mark.parametrize("stopped", [False, True])
async def test_it_ends_with_the_service_also_when_it_hangs(emulators, stopped):
    async with started():
        if stopped:
            os.kill(*emulators(), signal.SIGSTOP)
    assert emulators() == []


async def test_one_that_does_not_start_is_an_error(monkeypatch, emulators):
    monkeypatch.setattr(emulator_link, "_MODULE", "bothy_host.no_such_module")
    with pytest.raises(OSError, match="does not answer"):
        async with started():
            pass
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    with pytest.raises(FileNotFoundError):
        async with started():
            pass
    assert emulators() == []
