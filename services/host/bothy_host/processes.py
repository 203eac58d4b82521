"""Ending a whole process session, so that a terminal that went leaves nobody behind.

Processes are addressed by descriptors, so that no signal reaches a stranger who got a number meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_ROUNDS = 16
"""How often newly forked members are looked for after KILL; a fork bomb is for the operator's resource limits."""


def members(session: int) -> list[int]:
    """The processes of a process session, zombies left out."""
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [number for number in numbers if _belongs(number, session)]


def hang_up(session: int) -> None:
    """HUP for every member, and CONT so that a stopped one hears it."""
    with _opened(session) as descriptors:
        _signal(descriptors, signal.SIGHUP, signal.SIGCONT)


async def end_session(session: int, grace: float) -> None:
    """HUP for every member, KILL for those who are still there ``grace`` seconds later, until none is left."""
    with _opened(session) as descriptors:
        _signal(descriptors, signal.SIGHUP, signal.SIGCONT)
        await _gone(descriptors, grace)
    for _ in range(_ROUNDS):
        with _opened(session) as descriptors:
            if not descriptors:
                return
            _signal(descriptors, signal.SIGKILL)
            await _gone(descriptors, grace)


def _belongs(number: int, session: int) -> bool:
    try:
        # Fields behind the parenthesised name: state, ppid, pgrp, session.
        state, _, _, found, *_ = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return False
    return int(found) == session and state not in "ZX"


@contextmanager
def _opened(session: int) -> Iterator[list[int]]:
    descriptors = []
    try:
        for number in members(session):
            with contextlib.suppress(OSError):
                descriptors.append(os.pidfd_open(number))
                if not _belongs(number, session):
                    os.close(descriptors.pop())
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _signal(descriptors: Iterable[int], *signals: signal.Signals) -> None:
    for descriptor in descriptors:
        for each in signals:
            # Gone meanwhile, or another user's (sudo): the hang-up of the terminal is all that reaches that one.
            with contextlib.suppress(ProcessLookupError, PermissionError):
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
