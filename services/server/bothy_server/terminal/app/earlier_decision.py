"""How long what was decided holds when the database cannot be asked again (``docs/spec/cluster.md``, N1a)."""

from __future__ import annotations

from typing import Protocol

from bothy_server.kernel.clock import Clock


class News(Protocol):
    """The part of the kernel's ``EventTail`` that tells how old the last news are."""

    @property
    def last_current_at(self) -> float | None:
        """Steady instant at which everything committed until then was delivered; None before the first time."""


class EarlierDecision:
    """Holds while a change of mind would have been heard not long ago."""

    def __init__(self, news: News, clock: Clock, stale_right_max: float) -> None:
        """``stale_right_max`` in seconds (key ``terminal.stale_right_max``)."""
        self._news = news
        self._clock = clock
        self._stale_right_max = stale_right_max

    @property
    def holds(self) -> bool:
        """Whether a right that was seen before the database went away still counts."""
        current_at = self._news.last_current_at
        return current_at is not None and self._clock.monotonic() <= current_at + self._stale_right_max
