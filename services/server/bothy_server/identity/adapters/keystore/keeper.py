"""The task that keeps a node's signing keys as its directory holds them, and speaks up when they are not as they should be."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from bothy_server.identity.adapters.keystore.ring import KeyRing, KeyTrouble
from bothy_server.identity.adapters.keystore.store import KeyStoreError, load_keys
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.tail import LoggedEvent

_log = logging.getLogger(__name__)


class KeyKeeper:
    """Implements ``TailSubscriber``: a command that changed the keys tells it in the event log, as ``keys.changed``."""

    def __init__(self, ring: KeyRing, clock: Clock, interval: float, changed: Callable[[], None]) -> None:
        """``interval``: seconds between two looks into the directory. ``changed`` hears that other keys are published."""
        self._ring = ring
        self._clock = clock
        self._interval = interval
        self._changed = changed
        self._due = asyncio.Event()
        self._seen: frozenset[KeyTrouble] = frozenset()
        self._told: frozenset[KeyTrouble] = frozenset()

    async def run(self) -> None:
        """Read the directory every interval, and when something tells of a change, until cancelled."""
        while True:
            timer = self._clock.call_at(self._clock.monotonic() + self._interval, self._due.set)
            try:
                await self._due.wait()
            finally:
                timer.cancel()
            self._due.clear()
            await self._read()

    async def on_events(self, events: Sequence[LoggedEvent]) -> None:
        """See the port."""
        if any(each.event.type == "keys.changed" for each in events):
            self._due.set()

    async def on_gap(self) -> None:
        """See the port."""
        self._due.set()

    def hear(self, elsewhere: Mapping[str, Collection[str]], signing: Collection[str]) -> None:
        """What other nodes hold, by their ids, and sign with. Called again and again."""
        self._ring.hear(elsewhere, signing)
        if self._ring.misses_a_key():
            self._due.set()
        self._look()

    def state(self) -> str:
        """``ok``, or what is wrong with the keys; for ``/readyz``."""
        return "; ".join(each.words for each in self._ring.troubles()) or "ok"

    async def _read(self) -> None:
        try:
            changed = self._ring.take(await asyncio.to_thread(load_keys, self._ring.directory))
        except KeyStoreError as error:
            _log.error("key store unreadable, the keys in use stay", extra={"error.type": type(error).__name__})
            return
        if changed:
            self._changed()

    def _look(self) -> None:
        """Log what is seen a second time: nodes do not read a change in the same moment."""
        found = frozenset(self._ring.troubles())
        lasting = found & self._seen
        new = sorted(lasting - self._told, key=attrgetter("record", "kid"))
        for record, troubles in groupby(new, key=attrgetter("record")):
            _log.warning(record, extra={"bothy.key.ids": [each.kid for each in troubles]})
        self._seen, self._told = found, lasting
