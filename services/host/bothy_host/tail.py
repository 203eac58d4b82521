"""The screen as the last output, played again behind a reset; for a host without the terminal emulator.

Modes and colours that were set before it are set again. What a program painted before it is lost, and with it the main
screen behind a full-screen program.
"""

from __future__ import annotations

from bothy_host.modes import Modes
from bothy_host.repaint import RESET, border, strip_queries

_MODES_BYTES = 2048
"""Room for the modes in front of the tail."""


class TailScreen:
    """A repaint has at most ``limit`` bytes, two kilobytes or more."""

    def __init__(self, limit: int) -> None:
        self._limit = limit - len(RESET) - _MODES_BYTES
        self._before = Modes()
        self._tail = bytearray()
        self._cut = False

    def feed(self, output: bytes) -> None:
        """The program printed."""
        self._tail += output
        gone = len(self._tail) - self._limit
        if gone > 0:
            cut = border(self._tail, gone)
            self._before.follow(bytes(self._tail[:cut]))
            del self._tail[:cut]
            self._cut = True

    def resize(self, columns: int, rows: int) -> None:
        """Output looks as it looks."""

    def repaint(self) -> bytes:
        """The modes, then the tail; from its first line end, when that is near and the beginning of a line is missing."""
        tail = bytes(self._tail)
        if not self._cut:
            return RESET + strip_queries(tail) if tail else b""
        begin = border(tail, tail.find(b"\n", 0, self._limit // 8) + 1)
        modes = self._before.copy()
        modes.follow(tail[:begin])
        return RESET + strip_queries(modes.again() + tail[begin:])
