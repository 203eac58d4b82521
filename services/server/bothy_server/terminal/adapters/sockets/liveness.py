"""Whether a peer is alive and takes what it is sent. Pure: time and sizes are arguments."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Verdict(Enum):
    """What the link should do now."""

    NOTHING = auto()
    PING = auto()
    LOST = auto()
    STALLED = auto()


@dataclass(slots=True)
class Liveness:
    """One peer's signs of life. Windows are in seconds.

    A peer that does not take what is queued cannot answer a ping that stands behind it, so two windows never run at
    once: while writing is paused only the stall is judged, else only the silence. Pings go out whatever is heard,
    because a peer that sends a long message on a slow way hears nothing else, and must not think us gone.
    """

    ping_interval: float
    ping_timeout: float
    stall_timeout: float
    heard: bool = True
    """Set by every read: a flag costs less than the clock."""
    took: bool = False
    """Set when the peer took enough for writing to go on."""
    _heard_at: float | None = None
    _pinged_at: float | None = None
    _queued_bytes: int | None = None
    _taken_at: float = 0.0
    _told: bool = False

    def judge(self, now: float, *, reading: bool, ping_waits: bool, stuck_bytes: int | None) -> Verdict:
        """Judge at steady instant ``now``.

        ``reading`` is false while the peer is not read for its counterpart's sake: then silence means nothing.
        ``ping_waits`` tells that the last ping could not be written yet. ``stuck_bytes`` is what is queued while
        writing is paused, else None.
        """
        if stuck_bytes is not None:
            self.heard = True
            return self._judge_stall(now, stuck_bytes)
        self._queued_bytes = None
        return self._judge_silence(now, excused=self.heard or not reading, ping_waits=ping_waits)

    def _judge_silence(self, now: float, *, excused: bool, ping_waits: bool) -> Verdict:
        if excused or self._heard_at is None:
            self.heard = False
            self._heard_at = now
        if self._pinged_at is None or ping_waits:
            # What was not asked yet cannot be answered: the timeout begins when the ping is out.
            self._pinged_at = now
            self._heard_at = max(self._heard_at, now - self.ping_interval)
        elif now - self._heard_at >= self.ping_interval + self.ping_timeout:
            return Verdict.LOST
        elif now - self._pinged_at >= self.ping_interval:
            self._pinged_at = now
            return Verdict.PING
        return Verdict.NOTHING

    def _judge_stall(self, now: float, stuck_bytes: int) -> Verdict:
        before, self._queued_bytes = self._queued_bytes, stuck_bytes
        if before is None or stuck_bytes < before or self.took:
            self.took = False
            self._taken_at = now
            self._told = False
        elif now - self._taken_at >= self.stall_timeout and not self._told:
            self._told = True
            return Verdict.STALLED
        return Verdict.NOTHING
