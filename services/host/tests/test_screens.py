"""The process that is kept for all sessions: started anew when it died, not at once, and told once."""

from __future__ import annotations

import asyncio
import os
import signal

from bothy_host import emulator_link
from bothy_host.screens import screens

LIMIT = 64 * 1024
PATIENCE = 20.0


async def test_later_sessions_get_a_new_process_and_the_log_says_once_that_the_old_one_died(
    emulators, eventually, caplog
):
    async with screens(patience=PATIENCE, interval=0.01) as make:
        before = make(LIMIT)
        before.feed(b"\x1b[?1049hfull")
        (first,) = emulators()
        os.kill(first, signal.SIGSEGV)
        await eventually(lambda: make(LIMIT)._remote and emulators() not in ([], [first]))
        after = make(LIMIT)
        for each in (before, after):
            each.feed(b"\x1b[31mred")
        assert await before.repaint() == b"\x1bc\x1b[?1049hfull\x1b[31mred", "the end of the output, to the end"
        assert (await after.repaint()).count(b"\x1b") > 5, "a picture"
    assert caplog.text.count("is gone: it ended") == 1
    assert emulators() == []


async def test_a_process_that_died_is_not_started_again_at_once(monkeypatch, emulators, eventually):
    starts = []
    monkeypatch.setattr(emulator_link, "_spawn", counted(starts, emulator_link._spawn))
    async with screens(patience=PATIENCE, interval=3600.0) as make:
        os.kill(*emulators(), signal.SIGKILL)
        await eventually(lambda: not make(LIMIT).emulated and emulators() == [])
        screen = make(LIMIT)
        screen.feed(b"text")
        assert await screen.repaint() == b"\x1bctext"
        assert len(starts) == 1


async def test_one_that_does_not_start_is_tried_again_told_once_and_no_reason_to_have_no_sessions(
    monkeypatch, eventually, caplog
):
    starts = []
    spawn = counted(starts, emulator_link._spawn)
    monkeypatch.setattr(emulator_link, "_spawn", spawn)
    monkeypatch.setattr(emulator_link, "_MODULE", "bothy_host.no_such_module")
    async with screens(patience=PATIENCE, interval=0.01) as make:
        assert not make(LIMIT).emulated
        await eventually(lambda: len(starts) > 2)
        assert caplog.text.count("does not start") == 1
        monkeypatch.setattr(emulator_link, "_MODULE", "bothy_host.emulator_process")
        await eventually(lambda: make(LIMIT).emulated)


async def test_without_the_extra_the_log_says_so(monkeypatch, caplog, emulators):
    caplog.set_level("INFO")
    monkeypatch.setattr(emulator_link, "installed", lambda: False)
    async with screens(patience=PATIENCE, interval=0.01) as make:
        assert not make(LIMIT).emulated
        assert emulators() == []
    assert "extra 'screen'" in caplog.text


def counted(calls, call):
    async def counting(*arguments) -> asyncio.subprocess.Process:
        calls.append(arguments)
        return await call(*arguments)

    return counting
