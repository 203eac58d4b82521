"""A node's feeds on real rows: the log is handed to them by the test, as the tail does."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from bothy_kit.manual_clock import ManualClock
from bothy_kit.rows import DeviceRow, Rows
from bothy_server.events.app.feed import Feed, Told
from bothy_server.events.app.feeds import FeedLimits, Feeds
from bothy_server.events.app.ports import LogStore
from bothy_server.events.app.replay import ReplayLimits
from bothy_server.kernel.unit import Event
from bothy_wire.ids import HostId

LIMITS = FeedLimits(
    per_person=2,
    per_node=3,
    waiting=4,
    comment_interval=10,
    presence_interval=1,
    retry=1.5,
    replay=ReplayLimits(most=6, batch=2),
)


class Reader:
    """One reader, told step by step."""

    def __init__(self, feed: Feed, told: AsyncIterator[Told]) -> None:
        self.feed = feed
        self.told = told

    async def next(self) -> Told:
        return await anext(self.told)

    async def begun(self) -> int:
        """Past the beginning of a stream without an id; where it begins."""
        reset, presence = await self.next(), await self.next()
        assert (reset.type, presence.type) == ("reset", "presence")
        return reset.position

    async def rest(self) -> list[Told]:
        return [each async for each in self.told]


class Node:
    """Feeds, and what the tail and the presence view would tell them."""

    def __init__(self, rows: Rows, clock: ManualClock) -> None:
        self.rows = rows
        self.clock = clock
        self.present: dict[HostId, str] = {}
        self.feeds = Feeds(rows.uow, clock, lambda: dict(self.present), LIMITS)
        self.position = 0

    @asynccontextmanager
    async def reading(self, device: DeviceRow, after: int | None = None) -> AsyncIterator[Reader]:
        feed = self.feeds.open(device.caller)
        try:
            async with aclosing(self.feeds.follow(feed, after)) as told:
                yield Reader(feed, told)
        finally:
            self.feeds.close(feed)

    async def head(self) -> int:
        async with self.rows.uow() as unit:
            return (await unit.of(LogStore).edges()).head

    async def emit(self, *events: Event) -> list[int]:
        """Commit events, of which nobody is told yet; their positions."""
        before = await self.head()
        for each in events:
            async with self.rows.uow() as unit:
                unit.emit(each)
        return list(range(before + 1, before + len(events) + 1))

    async def tell(self, after: int) -> None:
        """What the tail would tell of the log behind a position."""
        async with self.rows.uow() as unit:
            events = await unit.of(LogStore).behind(after, 1000)
        await self.feeds.on_events(events)


@pytest.fixture
def node(rows: Rows, clock: ManualClock) -> Node:
    return Node(rows, clock)


@pytest.fixture
def changes() -> Callable[[HostId], Event]:
    return lambda host_id: Event("host.updated", host_id=host_id)
