"""How long a client waits before it dials again: the steps of "soon" and "later" in ``docs/spec/close-codes.md``. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds: low and high of the first step, both doubling up to the cap."""

    soon: tuple[float, float] = (0.2, 1.0)
    later: tuple[float, float] = (1.0, 3.0)
    cap: float = 15.0
    settle: float = 60.0
    """A connection that was up for so long starts the steps over."""


def delay(first: tuple[float, float], tries: int, cap: float, chance: float) -> float:
    """Seconds before the try behind ``tries`` vain ones; ``chance`` is a random number from 0 up to 1.

    Uniform between low and high. Both shrink together at the cap, so that many clients stay spread there too.
    """
    low, high = first
    stretch = min(2.0 ** min(tries, 32), max(cap / high, 1.0))
    return (low + chance * (high - low)) * stretch
