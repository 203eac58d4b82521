"""Whole process sessions of real processes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bothy_host import processes


def started(script: str, *lines: str) -> subprocess.Popen[bytes]:
    """A process session that has said ``on``."""
    process = subprocess.Popen(["/bin/bash", "-c", script, *lines], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"on\n"
    return process


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[bytes]]]:
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for process in found:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def test_hup_is_enough_for_who_obeys_and_reaches_the_stopped(running):
    process = started("sleep 9999 & kill -STOP $!; echo on; wait")
    running.append(process)
    assert len(processes.members(process.pid)) == 2
    await asyncio.wait_for(processes.end_session(process.pid, 20), 20)
    assert process.wait() == -signal.SIGHUP
    assert processes.members(process.pid) == []


async def test_kill_follows_for_who_does_not(running):
    process = started("trap '' HUP; sleep 9999 & echo on; while :; do sleep 9999; done")
    running.append(process)
    await asyncio.wait_for(processes.end_session(process.pid, 0.2), 20)
    assert process.wait() == -signal.SIGKILL
    assert processes.members(process.pid) == []


async def test_who_forks_at_every_hangup_is_caught_in_the_end(running):
    process = started("trap '(sleep 9999) &' HUP; echo on; while :; do sleep 9999; done")
    running.append(process)
    await asyncio.wait_for(processes.end_session(process.pid, 0.2), 20)
    assert processes.members(process.pid) == []


async def test_another_session_is_left_alone(running):
    process, other = started("echo on; sleep 9999"), started("echo on; sleep 9999")
    running += [process, other]
    await asyncio.wait_for(processes.end_session(process.pid, 20), 20)
    assert other.poll() is None
    assert processes.members(other.pid)


async def test_nobody_is_nobody():
    await asyncio.wait_for(processes.end_session(2**22 - 1, 20), 20)


async def test_the_look_through_all_processes_is_none_of_the_loops_business(running, monkeypatch):
    process = started("echo on; sleep 9999")
    running.append(process)
    looked: list[bool] = []
    real = processes.members

    def members(session: int) -> list[int]:
        looked.append(threading.current_thread() is threading.main_thread())
        return real(session)

    monkeypatch.setattr(processes, "members", members)
    await asyncio.wait_for(processes.end_session(process.pid, 20), 20)
    assert looked
    assert not any(looked)


async def test_no_descriptor_is_left_open(running):
    process = started("echo on; sleep 9999")
    running.append(process)
    before = _descriptors()
    await asyncio.wait_for(processes.end_session(process.pid, 20), 20)
    assert _descriptors() == before


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
