"""The last output of a session, with positions counted from its first byte."""

from __future__ import annotations


class Ring:
    """Keeps at most ``capacity`` bytes, unless it was told to keep more; the oldest go first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._data = bytearray()
        self.end = 0
        """Position behind the newest byte."""

    @property
    def start(self) -> int:
        """Position of the oldest byte that is still here."""
        return self.end - len(self._data)

    def append(self, data: bytes, keep: int | None = None) -> None:
        """Add output. What stands at the position ``keep`` or behind it stays, whatever the capacity."""
        self._data += data
        self.end += len(data)
        gone = max(len(self._data) - self._capacity, 0)
        del self._data[: gone if keep is None else min(gone, max(keep - self.start, 0))]

    def slice(self, start: int, end: int) -> bytes:
        """The bytes between two positions, as far as they are still here."""
        first = self.start
        return bytes(self._data[max(start - first, 0) : max(end - first, 0)])
