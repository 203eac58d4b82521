"""The screen as the last output, played again; for a host without the terminal emulator."""

from __future__ import annotations

from bothy_host.repaint import RESET, from_border, strip_queries


class TailScreen:
    """Keeps the last ``limit`` bytes of output."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tail = bytearray()
        self._cut = False

    def feed(self, output: bytes) -> None:
        """The program printed."""
        self._tail += output
        gone = len(self._tail) - self._limit
        if gone > 0:
            del self._tail[:gone]
            self._cut = True

    def resize(self, columns: int, rows: int) -> None:
        """Output looks as it looks."""

    def repaint(self) -> bytes:
        """The tail behind a reset, from a border where a terminal may begin."""
        if not self._tail and not self._cut:
            return b""
        tail = bytes(self._tail)
        return RESET + strip_queries(from_border(tail) if self._cut else tail)
