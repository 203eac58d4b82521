"""The screen of one session: the emulator's while that keeps up, and beside it the end of the output for when it does not.

Nothing waits for the emulator's process but a repaint, not long, and whoever prints faster than it reads.
"""

from __future__ import annotations

import logging
import time

from bothy_host.emulator_link import RemoteScreen
from bothy_host.tail import TailScreen

_log = logging.getLogger(__name__)

# No keys: these bound one buffer of the whole host, which the process empties in some hundredths of a second.
_MOST_WAITING = 1024 * 1024
"""Bytes that the process has not taken, before whoever prints more of them waits."""
_LITTLE = 64 * 1024
"""Bytes that a session may print while others print too many."""
_FAR_TOO_MANY = 4 * _MOST_WAITING
"""And before whoever does not wait goes on without it."""


class SessionScreen:
    """A :class:`~bothy_host.screen.ScreenState`."""

    def __init__(self, remote: RemoteScreen | None, limit: int, patience: float) -> None:
        """``remote``: none when there is no emulator. ``limit``: bytes of a repaint. ``patience``: seconds that it may take."""
        self._remote = remote
        self._tail = TailScreen(limit)
        self._patience = patience
        self._printed = False
        self._fed = 0  # since the process last kept up with all
        self._behind_since: float | None = None

    @property
    def emulated(self) -> bool:
        """Whether an emulator is fed."""
        return self._remote is not None

    def feed(self, output: bytes) -> None:
        """The program printed."""
        self._printed = self._printed or bool(output)
        self._tail.feed(output)
        if self._remote is not None:
            self._remote.feed(output)
            self._fed += len(output)
            if self._remote.waiting > _FAR_TOO_MANY and self._fed > _LITTLE:
                self._give_up()

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now."""
        if self._remote is not None:
            self._remote.resize(columns, rows)

    @property
    def behind(self) -> bool:
        """See :class:`~bothy_host.screen.ScreenState`; for so long as a repaint may take."""
        if self._remote is None or self._remote.waiting <= _MOST_WAITING:
            self._fed, self._behind_since = 0, None
        elif self._fed <= _LITTLE:
            pass  # others print so much
        elif self._behind_since is None:
            self._behind_since = time.monotonic()
        elif time.monotonic() - self._behind_since > self._patience:
            self._give_up()
        return self._remote is not None and self._behind_since is not None

    async def repaint(self) -> bytes:
        """See :class:`~bothy_host.screen.ScreenState`."""
        if not self._printed:
            return b""
        picture = None if self._remote is None else await self._remote.picture(self._patience)
        return self._tail.repaint() if picture is None else picture

    def close(self) -> None:
        """The session has ended."""
        if self._remote is not None:
            self._remote.close()
            self._remote = None

    def _give_up(self) -> None:
        _log.warning("a session goes on without the terminal emulator, which does not keep up with it")
        self.close()
