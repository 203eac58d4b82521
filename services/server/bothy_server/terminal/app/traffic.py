"""How much passed in the pairs of this node, and when last: written into the rows in batches.

Each session is written at most once every ``terminal.last_frame_interval`` and at the end of a pairing, and only when
something passed. ``last_frame_at`` then says "within the last interval", which is all that the idle backstop needs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from bothy_server.kernel.clock import Clock
from bothy_server.kernel.unit import StorageUnavailable, UnitOfWork
from bothy_server.terminal.app.ports import Moved, SessionStore, SideLink
from bothy_wire.ids import SessionId


@dataclass(frozen=True, slots=True)
class TrafficLimits:
    """Seconds: between two writes of a session, and before a write is tried again that the database did not take."""

    interval: float
    retry: float


class Traffic:
    """The meters of a node. :meth:`run` is the task that writes."""

    def __init__(self, uow: UnitOfWork, clock: Clock, limits: TrafficLimits) -> None:
        """Nothing is metered yet."""
        self._uow = uow
        self._clock = clock
        self._limits = limits
        self._meters: dict[SessionId, _Meter] = {}
        self._owed: dict[SessionId, Moved] = {}
        self._wake = asyncio.Event()

    def joined(self, session_id: SessionId, device: SideLink, host: SideLink) -> None:
        """A pair begins."""
        self._meters[session_id] = _Meter(session_id, device, host)

    def parted(self, session_id: SessionId) -> None:
        """It is over; does nothing when there is none."""
        meter = self._meters.pop(session_id, None)
        if meter is not None:
            self._owe(meter.read())
            self._wake.set()

    async def run(self) -> None:
        """Write until cancelled. What the database did not take is kept; then a try follows after ``retry``."""
        due = self._clock.monotonic() + self._limits.interval
        try:
            while True:
                await self._until(due)
                if self._clock.monotonic() >= due:
                    due = self._clock.monotonic() + self._limits.interval
                    self.collect()
                if not await self.write():
                    due = min(due, self._clock.monotonic() + self._limits.retry)
        finally:
            await self.write()  # of the pairs that ended with the node

    def collect(self) -> None:
        """Read all meters."""
        for meter in self._meters.values():
            self._owe(meter.read())

    async def write(self) -> bool:
        """Write what was read, in one statement; whether nothing is left of it."""
        owed, self._owed = self._owed, {}
        if not owed:
            return True
        try:
            async with self._uow() as unit:
                await unit.of(SessionStore).add_moved(list(owed.values()))
        except StorageUnavailable:
            for moved in owed.values():
                self._owe(moved)
            return False
        return True

    async def _until(self, at: float) -> None:
        """Return when a pairing is over, at the latest at ``at``."""
        timer = self._clock.call_at(at, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
        self._wake.clear()

    def _owe(self, moved: Moved) -> None:
        before = self._owed.get(moved.session_id, Moved(moved.session_id, 0, 0))
        total = Moved(moved.session_id, before.bytes_in + moved.bytes_in, before.bytes_out + moved.bytes_out)
        if total.bytes_in or total.bytes_out:
            self._owed[moved.session_id] = total


class _Meter:
    """Reads the counters of two links, which may have counted earlier pairings."""

    def __init__(self, session_id: SessionId, device: SideLink, host: SideLink) -> None:
        self._session_id = session_id
        self._device = device
        self._host = host
        self._read_in = device.forwarded_bytes
        self._read_out = host.forwarded_bytes

    def read(self) -> Moved:
        """What passed since the last call."""
        before = self._read_in, self._read_out
        self._read_in, self._read_out = self._device.forwarded_bytes, self._host.forwarded_bytes
        return Moved(self._session_id, self._read_in - before[0], self._read_out - before[1])
