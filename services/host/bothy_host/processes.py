"""Ending a whole process session from outside, so that a terminal that went leaves nobody behind.

Processes are addressed by descriptors, so that no signal reaches a stranger who got a number meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

_ROUNDS = 16
"""How often newly forked members are looked for after KILL; a fork bomb is for the operator's resource limits."""


def members(session: int) -> list[int]:
    """The processes of a process session, zombies left out."""
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [number for number in numbers if _belongs(number, session)]


async def end_session(session: int, grace: float) -> None:
    """HUP for every member, KILL for those who are still there ``grace`` seconds later, until none is left."""
    # CONT, so that a stopped one hears the HUP.
    await _end_members(session, grace, signal.SIGHUP, signal.SIGCONT)
    for _ in range(_ROUNDS):
        if not await _end_members(session, grace, signal.SIGKILL):
            return


async def _end_members(session: int, patience: float, *signals: signal.Signals) -> int:
    """Signal all members and wait until they ended, at most ``patience`` seconds; returns how many there were."""
    descriptors = await asyncio.to_thread(_open_members, session)
    try:
        for descriptor in descriptors:
            _signal(descriptor, signals)
        await _gone(descriptors, patience)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return len(descriptors)


def _belongs(number: int, session: int) -> bool:
    try:
        # Fields behind the parenthesised name: state, ppid, pgrp, session.
        state, _, _, found, *_ = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return False
    return int(found) == session and state not in "ZX"


def _open_members(session: int) -> list[int]:
    """Descriptors of the members. Reads all of ``/proc``, so it belongs in a thread."""
    descriptors = []
    for number in members(session):
        with contextlib.suppress(OSError):
            descriptors.append(os.pidfd_open(number))
            if not _belongs(number, session):
                os.close(descriptors.pop())
    return descriptors


def _signal(descriptor: int, signals: Iterable[signal.Signals]) -> None:
    # Gone meanwhile, or another user's (sudo): the hang-up of the terminal is all that reaches that one.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        for each in signals:
            signal.pidfd_send_signal(descriptor, each)


async def _gone(descriptors: list[int], patience: float) -> None:
    """Wait until all ended, at most ``patience`` seconds."""
    loop = asyncio.get_running_loop()
    all_gone = loop.create_future()
    waiting = set(descriptors)

    def ended(descriptor: int) -> None:
        loop.remove_reader(descriptor)
        waiting.discard(descriptor)
        if not waiting and not all_gone.done():
            all_gone.set_result(None)

    for descriptor in descriptors:
        loop.add_reader(descriptor, ended, descriptor)
    try:
        with contextlib.suppress(TimeoutError):
            if waiting:
                await asyncio.wait_for(all_gone, patience)
    finally:
        for descriptor in waiting:
            loop.remove_reader(descriptor)
