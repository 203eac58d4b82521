"""What was given to the terminal and is not written yet: how much of it counts as output, and when it is of no use any more. Pure."""

from __future__ import annotations

from collections import deque

from bothy_device.events import Discard, Effect, Show


class Display:
    """The terminal, as far as output is concerned."""

    def __init__(self) -> None:
        self._unwritten: deque[tuple[int, bool]] = deque()
        """Lengths, and whether they count as output."""
        self._stale = False
        """What is unwritten belongs to an older count of output."""
        self._repainting = False

    @property
    def busy(self) -> bool:
        """Whether something is not written yet."""
        return bool(self._unwritten)

    def opened(self, *, exact: bool) -> None:
        """A channel is open, on which output goes on exactly where it was, or else is counted anew."""
        self._stale, self._repainting = not exact, False

    def output(self, data: bytes) -> list[Effect]:
        """The program printed."""
        return (self._discard() if self._stale else []) + self._show(data, counts=True)

    def repaint(self, data: bytes, *, last: bool) -> list[Effect]:
        """A part of the screen as it is."""
        begins, self._repainting = not self._repainting, not last
        return (self._discard() if begins else []) + self._show(data, counts=False)

    def written(self, count: int) -> int:
        """The terminal took that many bytes, or they were discarded. Returns how many of them were output."""
        processed = 0
        while count and self._unwritten:
            length, counts = self._unwritten.popleft()
            taken = min(count, length)
            count -= taken
            processed += taken if counts else 0
            if taken < length:
                self._unwritten.appendleft((length - taken, counts))
        return processed

    def _discard(self) -> list[Effect]:
        """What follows stands for all that the terminal has not taken, which else would have no bound."""
        self._stale = False
        return [Discard()] if self._unwritten else []

    def _show(self, data: bytes, *, counts: bool) -> list[Effect]:
        if not data:
            return []
        self._unwritten.append((len(data), counts))
        return [Show(data)]
