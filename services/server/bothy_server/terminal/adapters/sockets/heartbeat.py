"""One timer for all forwarders of a node: it finds the silent and the stalled, and adds up what passed."""

from __future__ import annotations

import logging

from bothy_server.kernel.clock import Clock, Timer
from bothy_server.terminal.adapters.sockets.forwarder import ForwarderLimits, StreamForwarder

SWEEPS_PER_WINDOW = 4
"""How late a window may be noticed: a quarter of the shortest one."""

_log = logging.getLogger(__name__)


class Heartbeat:
    """Sweeps the forwarders it watches until they are gone. The timer runs only while there are any."""

    def __init__(self, limits: ForwarderLimits, clock: Clock) -> None:
        self._clock = clock
        shortest = min(limits.ping_interval, limits.ping_timeout, limits.stall_timeout)
        self._interval = shortest / SWEEPS_PER_WINDOW
        self._links: set[StreamForwarder] = set()
        self._timer: Timer | None = None
        self._past_bytes = 0
        self._past_frames = 0

    def watch(self, link: StreamForwarder) -> None:
        """Take ``link`` into the sweep, right after it was made."""
        self._links.add(link)
        if self._timer is None:
            self._arm()

    def stop(self) -> None:
        """End the sweep; nothing is watched any more."""
        self._links.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def __len__(self) -> int:
        """How many links are watched; one that is gone leaves at the next sweep."""
        return len(self._links)

    @property
    def forwarded_bytes(self) -> int:
        """Payload bytes forwarded by all links so far. It only grows."""
        return self._past_bytes + sum(link.forwarded_bytes for link in self._links)

    @property
    def forwarded_frames(self) -> int:
        """Frames forwarded by all links so far. It only grows."""
        return self._past_frames + sum(link.forwarded_frames for link in self._links)

    def _arm(self) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic() + self._interval, self._sweep)

    def _sweep(self) -> None:
        now = self._clock.monotonic()
        for link in [link for link in self._links if link.is_gone]:
            self._links.remove(link)
            self._past_bytes += link.forwarded_bytes
            self._past_frames += link.forwarded_frames
        self._timer = None
        if self._links:
            self._arm()
        for link in self._links:
            try:
                link.sweep(now)
            except Exception:  # noqa: BLE001 - one link's fault must not keep the others from being judged
                _log.exception("terminal link could not be judged")
                link.abort()
