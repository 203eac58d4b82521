"""Warnings that repeat are logged a few times a minute (``log.repeat_rate``); counters tell the rest."""

from __future__ import annotations

_MINUTE_S = 60.0


class Throttle:
    """One kind of record: ``per_minute`` are let through in each minute, counted from the first of them."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._left = per_minute
        self._until: float | None = None

    def admits(self, now: float) -> bool:
        """Whether the record of steady instant ``now`` is logged."""
        if self._until is None or now >= self._until:
            self._until = now + _MINUTE_S
            self._left = self._per_minute
        if self._left == 0:
            return False
        self._left -= 1
        return True
