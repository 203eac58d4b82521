"""The feeds of one node: what commits anywhere, told to each reader who may see it (``docs/spec/protocol.md``, Events).

A feed is entered before the log is read for it. So what commits meanwhile waits in it, what was committed before is read,
and what is both is told once, since positions grow. Rights are asked for again with every batch of events, for all
feeds by one read; nobody holds a connection of the database while they wait.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from bothy_server.events.app.feed import QUIET, Feed, Told
from bothy_server.events.app.ports import LogStore, SightStore
from bothy_server.events.app.replay import ReplayLimits, persons_in, replay, reset, told
from bothy_server.events.domain.sight import Sight
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import StorageUnavailable, Unit, UnitOfWork
from bothy_wire.ids import HostId

_OFFLINE = "offline"
"""The word for a host that has no connection; the view leaves those out."""
_RECONNECT = Told("reconnect", {})


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """Numbers and seconds, keys of ``events``; ``replay`` has its own."""

    per_person: int
    per_node: int
    waiting: int
    comment_interval: float
    presence_interval: float
    retry: float
    replay: ReplayLimits


class Feeds:
    """Implements ``TailSubscriber``; :meth:`run` is its task, which follows the presence of hosts."""

    def __init__(
        self, uow: UnitOfWork, clock: Clock, presence: Callable[[], Mapping[HostId, str]], limits: FeedLimits
    ) -> None:
        """``presence`` is this node's view: the word for each host that has a connection somewhere."""
        self._uow = uow
        self._clock = clock
        self._presence = presence
        self._limits = limits
        self._feeds: set[Feed] = set()
        self._reached = 0
        self._present: Mapping[HostId, str] = {}
        self._leaving = False
        self.slow = 0
        """Feeds that ended since their reader did not keep up; only grows."""

    @property
    def count(self) -> int:
        """How many readers there are."""
        return len(self._feeds)

    # ---- one reader -----------------------------------------------------------------------------------------------

    def open(self, caller: Caller) -> Feed:
        """A feed that is told everything from now on, until it is closed. Raises 503 ``node_leaving``, 429 ``feed_limit``."""
        wait_s = math.ceil(self._limits.retry)
        if self._leaving:
            raise Problem(503, "node_leaving", "This node is leaving. Another one answers.", retry_after_s=wait_s)
        own = sum(each.caller.person_id == caller.person_id for each in self._feeds)
        if own >= self._limits.per_person or self.count >= self._limits.per_node:
            detail = "Events are told to as many readers as there may be. Close a page, or try again later."
            raise Problem(429, "feed_limit", detail, retry_after_s=wait_s)
        if not self._feeds:
            self._present = self._presence()
        feed = Feed(caller, self._limits.waiting)
        self._feeds.add(feed)
        return feed

    def close(self, feed: Feed) -> None:
        """Its reader has gone. Closing twice changes nothing."""
        feed.cut()
        if feed in self._feeds:
            self._feeds.discard(feed)
            self.slow += feed.slow

    async def follow(self, feed: Feed, after: int | None) -> AsyncIterator[Told]:
        """What its reader is told: what is behind ``after`` in the log, then everything as it comes.

        Ends with the feed; also when the database is away at the start, or its device may not act any more.
        """
        reached = 0
        try:
            async for batch in replay(self._uow, feed.caller.device_id, after, self._limits.replay):
                for each in batch:
                    yield each
                reached = batch[-1].position or reached
            present = await self._first_presence(feed)
        except StorageUnavailable:
            return
        if present is None:
            return
        yield present
        while True:
            for each in feed.take():
                if each.position is not None and each.type != "reset" and each.position <= reached:
                    continue  # it was read, too
                reached = reached if each.position is None else each.position
                yield each
            if feed.over:
                return
            if not await feed.wait(self._clock, self._limits.comment_interval):
                yield Told(None, {}, self._reached) if self._reached > reached else QUIET
                reached = max(reached, self._reached)

    async def _first_presence(self, feed: Feed) -> Told | None:
        """All of it; None for a device that may not act any more."""
        async with self._uow() as unit:
            sight = (await unit.of(SightStore).sights([feed.caller.device_id])).get(feed.caller.device_id)
        return None if sight is None else _presence(sight, self._presence(), complete=True)

    # ---- what all of them are told --------------------------------------------------------------------------------

    async def on_events(self, events: Sequence[LoggedEvent]) -> None:
        """See the port."""
        if feeds := list(self._feeds):
            async with self._uow() as unit:
                persons = await persons_in(unit, events)
                sights = await _sights(unit, feeds)
            all_told = [(each.event, told(each)) for each in events]
            for feed, sight in sights:
                for event, as_told in all_told:
                    if sight.sees(event, persons):
                        feed.tell(as_told)
                await asyncio.sleep(0)  # many readers of a long batch hold nobody up
        self._reached = events[-1].position

    async def on_gap(self) -> None:
        """See the port."""
        feeds = list(self._feeds)
        async with self._uow() as unit:
            edges = await unit.of(LogStore).edges()
            sights = await _sights(unit, feeds)
        for feed, _ in sights:
            feed.tell(reset(edges.head))
        self._reached = edges.head

    async def run(self) -> None:
        """Tell changes of presence until cancelled."""
        while True:
            await self._clock.sleep_until(self._clock.monotonic() + self._limits.presence_interval)
            if self._feeds and (changed := self._changed_presence()):
                try:
                    await self._tell_presence(changed)
                except StorageUnavailable:
                    continue  # who may see it cannot be asked: it is told later

    def drain(self) -> None:
        """Every reader is sent to another node, and none is taken any more."""
        self._leaving = True
        for feed in self._feeds:
            feed.end(_RECONNECT)

    def _changed_presence(self) -> dict[HostId, str]:
        now = self._presence()
        changed = {host_id for host_id, _ in now.items() ^ self._present.items()}
        return {host_id: now.get(host_id, _OFFLINE) for host_id in changed}

    async def _tell_presence(self, changed: Mapping[HostId, str]) -> None:
        feeds = list(self._feeds)
        async with self._uow() as unit:
            sights = await _sights(unit, feeds)
        for feed, sight in sights:
            if (seen := _presence(sight, changed, complete=False)).data["hosts"]:
                feed.tell(seen)
        kept = {host_id: word for host_id, word in self._present.items() if host_id not in changed}
        self._present = kept | {host_id: word for host_id, word in changed.items() if word != _OFFLINE}


def _presence(sight: Sight, words: Mapping[HostId, str], *, complete: bool) -> Told:
    hosts = {str(host_id): word for host_id, word in words.items() if sight.sees_host(host_id)}
    return Told("presence", {"all": complete, "hosts": hosts})


async def _sights(unit: Unit, feeds: Collection[Feed]) -> list[tuple[Feed, Sight]]:
    """What the reader of each feed may see now; who may not act any more has their feed cut."""
    found = await unit.of(SightStore).sights({each.caller.device_id for each in feeds}) if feeds else {}
    for feed in feeds:
        if feed.caller.device_id not in found:
            feed.cut()
    return [(feed, found[feed.caller.device_id]) for feed in feeds if feed.caller.device_id in found]
