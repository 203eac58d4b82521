"""How much output may be in flight: what the way and the device's terminal carry in a round trip and a little more.

On a slow way the bytes in flight stand in a queue, and Ctrl-C shows only behind them; on a fast long one too few of them
leave the way idle. Both are seen in one measure. A piece that went out with ``n`` bytes in flight and was acknowledged
after ``t`` seconds says that ``n / t`` bytes a second get through, so ``n * goal / t`` of them get through in the time that
they should take.

Nothing here knows records or keys, and time is an argument.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from bothy_wire.channel.flow import Limits

SPARE = 0.5
"""Seconds that output may take beyond a round trip. A way or a terminal that stutters for less is never idle for it."""
LONGEST_ROUND_TRIP = 2.0
"""Seconds. What was measured through somebody else's queue must not fill a queue of our own."""
_PIECES = 8
_PROBES = 16
"""Pieces of a window that are timed at most; to time every small one would cost memory and tell no more."""


@dataclass(frozen=True, slots=True)
class _Probe:
    position: int  # behind its last byte
    in_flight: int  # with this piece
    sent_at: float


class OutputWindow:
    """The window of one channel; ``size`` bytes may be in flight."""

    def __init__(self, limits: Limits, round_trip: float) -> None:
        """``round_trip`` is that of the handshake, in seconds: nothing else was on the way then."""
        self.size = limits.output_window
        self._least, self._most = limits.output_window_min, limits.output_window_max
        self._round_trip = max(round_trip, 0.0)  # the shortest known
        self._probes: deque[_Probe] = deque()

    @property
    def piece(self) -> int:
        """Bytes of output that should travel together at most: the device takes, and acknowledges, only whole pieces."""
        return max(self.size // _PIECES, 1)

    def repainted(self, count: int) -> None:
        """A repaint of ``count`` bytes goes out in front of all output, which waits behind it as behind output."""
        self.size = max(self._least, self.size - count)

    def sent(self, position: int, in_flight: int, now: float) -> None:
        """Output up to ``position`` goes out; with it ``in_flight`` bytes are not acknowledged."""
        if not self._probes or position - self._probes[-1].position >= self.size // _PROBES:
            self._probes.append(_Probe(position, in_flight, now))

    def acknowledged(self, position: int, now: float) -> None:
        """The device's terminal took everything up to ``position``."""
        while self._probes and self._probes[0].position <= position:
            probe = self._probes.popleft()
            if (took := now - probe.sent_at) > 0:
                self._learn(probe.in_flight, took)

    def _learn(self, in_flight: int, took: float) -> None:
        self._round_trip = min(self._round_trip, took)
        goal = min(self._round_trip, LONGEST_ROUND_TRIP) + SPARE
        # Twice what was tried, at most: what is beyond it nobody has seen.
        fitting = in_flight * min(goal / took, 2)
        # With little in flight a long time tells of the delay alone, and with half a window nothing of a larger one.
        if fitting > self.size or (took > goal and in_flight >= self._least):
            self.size = max(self._least, min(int(fitting), self._most))
