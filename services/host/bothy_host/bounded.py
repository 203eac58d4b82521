"""The emulator while it is cheap; the end of the output from the moment that a program makes it dear.

Some sequences are a few bytes and a great deal of work. Whoever prints enough of them would hold up every session of the host, so a
session's screen may take only so much processor time: an amount for each byte, far above what any useful output needs, and a
share of the time that passes. A screen that takes more is the emulator's no longer.
"""

from __future__ import annotations

import logging
import time

from bothy_host.emulated import EmulatedScreen
from bothy_host.tail import TailScreen

_log = logging.getLogger(__name__)

# No keys: the numbers belong to the emulator (docs/adr/0019), and less of them would take it from programs that mean well.
_SLICE_BYTES = 256
"""So little at a time, because the worst of it takes a tenth of a millisecond a byte."""
_PER_BYTE_S = 0.3e-6
_SHARE = 0.1
_MOST_S = 0.1
_MOST_CELLS = 64 * 1024
"""Of a larger terminal than a screen of today shows, a repaint alone would hold up the others."""


class BoundedScreen:
    """An :class:`~bothy_host.emulated.EmulatedScreen` of bounded cost."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._screen: EmulatedScreen | TailScreen = EmulatedScreen(limit)
        self._emulated = True
        self._size: tuple[int, int] | None = None  # not passed on yet: a storm of sizes is worth its last
        self._left = _MOST_S
        self._seen_at = time.monotonic()

    def feed(self, output: bytes) -> None:
        """The program printed."""
        if not self._emulated:
            self._screen.feed(output)
            return
        now = time.monotonic()
        self._left = min(self._left + (now - self._seen_at) * _SHARE, _MOST_S)
        self._seen_at = now
        began, began_by_the_wall = time.thread_time(), time.perf_counter()
        self._pass_size_on()
        for start in range(0, len(output), _SLICE_BYTES):
            self._screen.feed(output[start : start + _SLICE_BYTES])
            allowed = self._left + (start + _SLICE_BYTES) * _PER_BYTE_S
            # The clock on the wall costs less to read, and says when the other one is worth it.
            if time.perf_counter() - began_by_the_wall > allowed and time.thread_time() - began > allowed:
                self._give_up("its output takes too much time")
                self._screen.feed(output[start + _SLICE_BYTES :])
                return
        self._left = min(self._left + len(output) * _PER_BYTE_S - (time.thread_time() - began), _MOST_S)

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now."""
        self._size = columns, rows
        if self._emulated and columns * rows > _MOST_CELLS:
            self._give_up("its terminal is too large")

    def repaint(self) -> bytes:
        """See :class:`~bothy_host.emulated.EmulatedScreen`."""
        self._pass_size_on()
        return self._screen.repaint()

    def _pass_size_on(self) -> None:
        if self._size is not None:
            self._screen.resize(*self._size)
            self._size = None

    def _give_up(self, reason: str) -> None:
        _log.warning("a session goes on without the terminal emulator: %s", reason)
        tail = TailScreen(self._limit)
        tail.feed(self._screen.repaint())
        self._screen, self._emulated = tail, False
