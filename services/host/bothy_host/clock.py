"""Time on the host: steady seconds that count suspend, and cluster time (``docs/spec/cluster.md``, C)."""

from __future__ import annotations

import time


def steady() -> float:
    """Seconds since boot, the time asleep included, so that a connection that died during a suspend is seen as old."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ClusterClock:
    """The server's time, carried on by this machine's steady clock. Its own wall clock is never used."""

    def __init__(self) -> None:
        self._offset = time.time() - steady()

    def set(self, server_time: float) -> None:
        """Take over a time that the server just sent."""
        self._offset = server_time - steady()

    def now(self) -> float:
        """Seconds since the epoch of cluster time; before the server has spoken, this machine's guess."""
        return steady() + self._offset
