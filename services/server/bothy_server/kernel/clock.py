"""Time as a port. Rules get instants as arguments; shells get a Clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol


class Timer(Protocol):
    """One armed callback."""

    def cancel(self) -> None:
        """Disarm. Cancelling twice, or after it fired, does nothing."""


class Clock(Protocol):
    """Cluster time and the node's own steady time (``docs/spec/cluster.md``, C)."""

    def now(self) -> datetime:
        """Cluster time: the database's clock as last read, carried on by the steady clock. Always UTC."""

    def monotonic(self) -> float:
        """Steady seconds that count suspend; only differences mean anything."""

    def call_at(self, at: float, callback: Callable[[], None]) -> Timer:
        """Run ``callback`` on the loop at steady instant ``at`` (now, when it has passed)."""

    async def sleep_until(self, at: float) -> None:
        """Return at steady instant ``at``."""
