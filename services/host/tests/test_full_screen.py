"""Real programs that fill the screen, left by one device and found by another that has seen nothing (BR-32)."""

from __future__ import annotations

import os
import shutil
import signal
import sys

import pytest

from bothy_host.emulated import EmulatedScreen
from bothy_host.screens import screens

SET = r"\033[?1049h\033[?1000h\033[?1006h\033[?2004h\033[?1h\033[?25l"
MODES = (1049, 1000, 1006, 2004, 1)
MEGABYTE = f"printf '{SET}'; head -c 1000000 /dev/zero | tr '\\0' z | fold -w 79; printf '\\033[5;5Hhe''re'; head -c 1"
CURSES = (
    "import curses; s = curses.initscr(); curses.start_color(); curses.init_pair(1, 1, 4); s.bkgd(' ', curses.color_pair(1));"
    " s.box(); s.addstr(3, 4, 'here', curses.A_BOLD); s.refresh(); s.getch(); curses.endwin()"
)
PROGRAMS = {
    "a megabyte": (MEGABYTE, b"here", b"x\n"),
    "curses": (f'{sys.executable} -c "{CURSES}"', b"here", b"x"),
    "less": ("seq 1000 2000 | less", b"1010", b"q"),
    "vim": ("seq 1000 2000 > numbers; vim -u NONE -i NONE -n numbers", b"1010", b":q!\r"),
}


@pytest.fixture
async def make_screen():
    """Screens of a real emulator, which has all the time that it needs."""
    async with screens(patience=20.0, interval=60.0) as made:
        yield made


def installed(name: str) -> bool:
    return name not in {"less", "vim"} or shutil.which(name) is not None


def screen_of(output: bytes, size: tuple[int, int] = (80, 24)) -> EmulatedScreen:
    screen = EmulatedScreen(256 * 1024)
    screen.resize(*size)
    screen.feed(output)
    return screen


@pytest.mark.parametrize("name", [name for name in PROGRAMS if installed(name)])
async def test_br32_another_device_finds_the_program_as_it_was(start, tmp_path, name):
    command, shows, leave = PROGRAMS[name]
    machine = await start()
    first, side = await machine.session()
    await first.open(side)
    await first.type(f"cd {tmp_path}; echo be''fore; {command}\n".encode())
    await first.shows(shows)
    output = machine.sessions._running[first.session_id]._conversation._output
    await first.changes.until(lambda: len(first.output) == output.end)
    await side.leave()
    second = type(first)(machine.server, machine.channel_public, first.session_id)
    await second.open(side)
    await second.changes.until(lambda: second.repainted)
    seen, found = screen_of(bytes(first.output)), screen_of(bytes(second.repaint))
    assert found.repaint() == screen_of(seen.repaint()).repaint()
    if name == "a megabyte":
        assert all(found._emulator.mode(mode) for mode in MODES)
        assert not found._emulator.mode(25)
    await second.type(leave)
    await second.changes.until(lambda: second.output.endswith(b"$ "))
    await second.type(b"printf '\\033[?1049l'; echo af''ter\n")
    await second.shows(b"after")
    back = screen_of(bytes(second.repaint + second.output)).repaint()
    assert b"before" in back
    assert not screen_of(bytes(second.repaint + second.output))._emulator.alternate


async def test_bx12_who_comes_back_with_another_size_sees_it_in_that_size(start):
    machine = await start()
    first, side = await machine.session()
    await first.open(side)
    await first.type(b"echo " + b"x" * 100 + b"e''nd\n")
    await first.shows(b"xend")
    await side.leave()
    second = type(first)(machine.server, machine.channel_public, first.session_id)
    await second.open(side, size=(30, 20))
    await second.type(b"stty size\n")
    await second.shows(b"20 30")
    lines = screen_of(bytes(second.repaint), (30, 20))._emulator.paint_screen(modes=False).split(b"\r\n")
    assert b"x" * 30 in lines


async def test_a_program_that_is_too_fast_for_the_emulator_waits_for_it_and_nobody_else_does(
    start, emulators, eventually
):
    machine = await start()
    fast, side = await machine.session()
    await fast.open(side)
    other, other_side = await machine.session()
    await other.open(other_side)
    for each in (fast, other):
        await each.shows(b"$ ")
    os.kill(*emulators(), signal.SIGSTOP)
    await fast.type(b"head -c 4000000 /dev/zero | tr '\\0' z; echo e''nd\n")
    screen = machine.sessions._running[fast.session_id]._conversation._screen
    await eventually(lambda: screen.behind)
    await other.type(b"echo qui''ck\n")
    await other.shows(b"quick")
    assert b"end" not in fast.output.replace(b"e''nd", b"")
    os.kill(*emulators(), signal.SIGCONT)
    await fast.shows(b"zend")
    assert screen.emulated


async def test_an_emulator_that_hangs_holds_up_who_attaches_and_nobody_else(start, emulators):
    machine = await start()
    first, side = await machine.session()
    await first.open(side)
    await first.type(b"echo be''fore\n")
    await first.shows(b"before\r\n")
    other, other_side = await machine.session()
    await other.open(other_side)
    await side.leave()
    os.kill(*emulators(), signal.SIGSTOP)
    second = type(first)(machine.server, machine.channel_public, first.session_id)
    await second.open(side)
    await second.type(b"echo mean''while\n")
    for number in range(20):
        await other.type(b"echo numb''er %d\n" % number)
        await other.shows(b"number %d\r\n" % number)
    assert second.repainted == 0, "twenty commands of another went there and back while one waited for its screen"
    os.kill(*emulators(), signal.SIGCONT)
    await second.shows(b"meanwhile\r\n")
    assert second.repainted == 1
    assert b"before" in second.repaint
    assert b"meanwhile" not in second.repaint, "what comes later stands behind it"


async def test_who_hangs_up_on_an_emulator_that_hangs_is_rid_of_it(start, emulators):
    machine = await start()
    first, side = await machine.session()
    await first.open(side)
    await first.type(b"echo be''fore\n")
    await first.shows(b"before\r\n")
    await side.leave()
    os.kill(*emulators(), signal.SIGSTOP)
    for _ in range(3):
        await type(first)(machine.server, machine.channel_public, first.session_id).open(side)
        await side.leave()
    third = type(first)(machine.server, machine.channel_public, first.session_id)
    await third.open(side)
    await third.type(b"exit 7\n")
    os.kill(*emulators(), signal.SIGCONT)
    assert await third.exits() == 7
    assert third.repainted == 1
    assert b"before" in third.repaint
