"""The screens of all sessions, and the process of the terminal emulator that is kept alive for them.

When it dies, the sessions that it knew are shown by the end of their output from then on: nobody can tell a new process what was on
their screens. Whoever can end it once can do so again, so that the next one, for later sessions, does not come at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from bothy_host import emulator_link
from bothy_host.clock import steady
from bothy_host.emulator_link import EmulatorLink
from bothy_host.screen import MakeScreen
from bothy_host.session_screen import SessionScreen

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def screens(*, patience: float, interval: float) -> AsyncIterator[MakeScreen]:
    """Makes the screens of new sessions: the emulator's where it is installed (extra ``screen``) and runs.

    ``patience``: seconds that a repaint may take. ``interval``: seconds from one start of the process to the next, at least.
    """
    made = _Screens(patience)
    if not emulator_link.installed():
        _log.info("the extra 'screen' is not installed: who attaches later is shown the end of the output")
        yield made.make
        return
    keeping = asyncio.create_task(made.keep(interval))
    try:
        await made.tried.wait()
        yield made.make
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping


class _Screens:
    def __init__(self, patience: float) -> None:
        self.tried = asyncio.Event()
        """Whether the first start succeeded or failed."""
        self._patience = patience
        self._link: EmulatorLink | None = None

    def make(self, limit: int) -> SessionScreen:
        remote = None if self._link is None else self._link.new(limit)
        return SessionScreen(remote, limit, self._patience)

    async def keep(self, interval: float) -> None:
        """Start a process whenever there is none, for ever. Each trouble is told once."""
        told = ""
        while True:
            began = steady()
            try:
                async with emulator_link.started() as self._link:
                    self.tried.set()
                    told = ""
                    reason = f"is gone: {await self._link.gone}"
            except OSError as error:
                reason = f"does not start: {error}"
            finally:
                self._link = None
                self.tried.set()
            wait = max(began + interval - steady(), 0)
            if reason != told:
                _log.error(
                    "the terminal emulator %s; the end of the output is shown; next start in %.0f s", reason, wait
                )
                told = reason
            await asyncio.sleep(wait)
