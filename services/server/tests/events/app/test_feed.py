"""What waits for one reader: in order, bounded, and its end."""

import asyncio
from uuid import uuid4

import pytest

from bothy_server.events.app.feed import Feed, Told
from bothy_server.kernel.caller import Caller
from bothy_wire.ids import DeviceId, PersonId

ROBIN = Caller(PersonId(uuid4()), DeviceId(uuid4()), is_operator=False, kind="browser")
ONE, TWO, THREE = (Told("host.updated", {}, position) for position in (1, 2, 3))


@pytest.fixture
def feed() -> Feed:
    return Feed(ROBIN, 2)


def test_what_is_told_waits_in_order(feed):
    feed.tell(ONE)
    feed.tell(TWO)
    assert list(feed.take()) == [ONE, TWO]
    assert list(feed.take()) == []
    assert not feed.over


def test_who_lets_too_much_wait_is_slow_and_is_told_nothing_more(feed):
    for each in (ONE, TWO, THREE):
        feed.tell(each)
    assert (feed.slow, feed.over, list(feed.take())) == (True, True, [])
    feed.tell(ONE)
    assert list(feed.take()) == []


def test_an_end_comes_behind_what_waits_and_a_cut_instead_of_it(feed):
    feed.tell(ONE)
    feed.end(TWO)
    feed.tell(THREE)
    feed.end(THREE)
    assert (feed.over, list(feed.take())) == (True, [ONE, TWO])
    another = Feed(ROBIN, 2)
    another.tell(ONE)
    another.cut()
    assert (another.over, another.slow, list(another.take())) == (True, False, [])


@pytest.mark.parametrize("act", [lambda feed: feed.tell(ONE), lambda feed: feed.end(ONE), lambda feed: feed.cut()])
async def test_news_end_the_wait(feed, clock, act):
    waiting = asyncio.create_task(feed.wait(clock, 10))
    await clock.wait_for_timer()
    act(feed)
    assert await waiting
    assert await feed.wait(clock, 10), "they are still there"


async def test_nothing_ends_it_in_time(feed, clock):
    waiting = asyncio.create_task(feed.wait(clock, 10))
    await clock.wait_for_timer()
    clock.advance(10)
    assert not await waiting
