"""How often something may happen: the generic cell rate algorithm, pure, and a bounded table of it.

All that is remembered of a subject is the instant at which its allowance is whole again. Each time moves that instant
on by one share of the period; whoever would be further than a period ahead comes too early.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

_ROUNDING_S = 1e-6
"""What sums of shares may be off; clocks and rows count microseconds."""


@dataclass(frozen=True, slots=True)
class Rate:
    """``count`` things in ``period_s`` seconds; as many may come at once."""

    count: int
    period_s: float


@dataclass(frozen=True, slots=True)
class Taken:
    """``whole_at``: what to remember. ``wait_s``: 0 when it may happen now, else how long until it may; then nothing was taken."""

    whole_at: float
    wait_s: float


def take(whole_at: float, now: float, rate: Rate) -> Taken:
    """One time more, at ``now``; both in seconds of one clock. A subject that was never seen is whole at any past instant."""
    moved = max(whole_at, now) + rate.period_s / rate.count
    early = moved - now - rate.period_s
    return Taken(moved, 0.0) if early <= _ROUNDING_S else Taken(whole_at, early)


class RateTable:
    """One rate for many subjects, of which at most ``most`` are remembered.

    Whose allowance is whole has nothing to remember, and goes first. When all owe something, who owes least goes: to be
    forgotten, a subject needs so many others that owe more than itself, and each of those took its share to come so far.
    A new one is never refused for want of room.
    """

    def __init__(self, rate: Rate, most: int) -> None:
        """``most`` bounds the memory, whoever comes."""
        self._rate = rate
        self._most = most
        self._whole_at: dict[str, float] = {}
        self._order: list[tuple[float, str]] = []
        """A heap with one entry of each subject. Its instant may be an older one, never a later one than the real."""

    def __len__(self) -> int:
        return len(self._whole_at)

    def take(self, subject: str, now: float) -> float:
        """One time more of ``subject``: 0 when it may happen now, else how many seconds it comes too early."""
        known = self._whole_at.get(subject)
        taken = take(now if known is None else known, now, self._rate)
        if not taken.wait_s:
            if known is None:
                self._make_room()
                heapq.heappush(self._order, (taken.whole_at, subject))
            self._whole_at[subject] = taken.whole_at
        return taken.wait_s

    def _make_room(self) -> None:
        while len(self._order) >= self._most:
            noted, subject = self._order[0]
            if (whole_at := self._whole_at[subject]) == noted:
                heapq.heappop(self._order)
                del self._whole_at[subject]
            else:
                heapq.heapreplace(self._order, (whole_at, subject))
