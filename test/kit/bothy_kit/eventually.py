"""Waiting for what somebody else brings about, where nothing tells of it."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable

from bothy_kit.sockets import PATIENCE_S


async def eventually(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    """Return as soon as it holds; fails when it does not within the patience of every step."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = holds()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(0.01)


def footprint() -> tuple[int, int]:
    """How many tasks and open files this process has. A socket whose dial was cancelled may wait in a cycle for the collector."""
    gc.collect()
    with os.scandir("/proc/self/fd") as files:
        return len(asyncio.all_tasks()), len(list(files))
