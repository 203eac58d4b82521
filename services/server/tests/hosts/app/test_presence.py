"""What this node says about the connections here, and what it makes of what the others say."""

import asyncio
from uuid import UUID

import pytest

from bothy_kit.recorded import RecordedControlLink, RecordedSignals
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.domain.presence import Presence as Word
from bothy_server.hosts.domain.presence import PresenceLimits
from bothy_server.hosts.domain.signals import HostGone, HostPresent

HOST, ELSEWHERE = UUID(int=1), UUID(int=2)
CONN = UUID(int=9)
FLUSH_S = 0.25
LIMITS = PresenceLimits(heartbeat_interval=10, miss_limit=3)


@pytest.fixture
def links():
    return ControlLinks()


@pytest.fixture
def signals():
    return RecordedSignals()


@pytest.fixture
def presence(links, signals, clock):
    return Presence(links, signals, clock, LIMITS, FLUSH_S)


def test_a_link_here_is_online_and_the_others_hear_of_it(presence, signals):
    link = RecordedControlLink(HOST, CONN)
    presence.announce(link)
    assert presence.connected(HOST)
    assert presence.of(HOST) is Word.ONLINE
    presence.left(link)
    assert not presence.connected(HOST)
    assert presence.of(HOST) is Word.OFFLINE
    assert signals.sent == [HostPresent(HOST, CONN), HostGone(HOST, CONN)]


def test_what_another_node_says_counts_for_a_window(presence, clock):
    presence.heard(HostPresent(ELSEWHERE, CONN))
    assert presence.of(ELSEWHERE) is Word.ONLINE
    clock.advance(LIMITS.window)
    assert presence.of(ELSEWHERE) is Word.LOST
    assert presence.connected(ELSEWHERE)
    clock.advance(0.001)
    assert not presence.connected(ELSEWHERE)


def test_another_node_says_that_it_went(presence):
    presence.heard(HostPresent(ELSEWHERE, CONN))
    presence.heard(HostGone(ELSEWHERE, CONN))
    assert not presence.connected(ELSEWHERE)


def test_while_nothing_can_be_heard_nothing_expires(presence, clock):
    presence.heard(HostPresent(ELSEWHERE, CONN))
    presence.hearing(False)
    clock.advance(10 * LIMITS.window)
    assert presence.connected(ELSEWHERE)
    presence.hearing(True)
    clock.advance(LIMITS.heartbeat_interval + 0.001)
    assert not presence.connected(ELSEWHERE)


def test_what_is_no_news_is_told_so(presence):
    """A connection that went, and one of this node, of which nobody else can speak."""
    here = RecordedControlLink(HOST, CONN)
    presence.announce(here)
    assert not presence.heard(HostPresent(HOST, CONN))
    assert not presence.heard(HostGone(HOST, CONN))
    assert presence.connected(HOST)
    assert presence.heard(HostPresent(ELSEWHERE, CONN))
    assert presence.heard(HostGone(ELSEWHERE, CONN))
    assert not presence.heard(HostPresent(ELSEWHERE, CONN))


@pytest.fixture
async def running(presence):
    task = asyncio.create_task(presence.run())
    yield
    task.cancel()
    await asyncio.wait([task])


async def test_heartbeats_are_told_once_an_interval(presence, running, signals, clock):
    for host_id in (HOST, ELSEWHERE, HOST):
        presence.alive(RecordedControlLink(host_id, host_id))
    assert await clock.wait_for_timer() == FLUSH_S
    clock.advance(FLUSH_S - 0.001)
    await asyncio.sleep(0)
    assert signals.sent == []
    clock.advance(0.001)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert signals.sent == [HostPresent(HOST, HOST), HostPresent(ELSEWHERE, ELSEWHERE)]
    presence.alive(RecordedControlLink(HOST, HOST))
    assert await clock.wait_for_timer() == FLUSH_S


async def test_who_left_is_not_called_back_by_a_batch(presence, running, signals, clock):
    leaving, staying = RecordedControlLink(HOST, CONN), RecordedControlLink(ELSEWHERE, ELSEWHERE)
    for link in (leaving, staying):
        presence.alive(link)
    presence.left(leaving)
    presence.announce(staying)
    told = [HostGone(HOST, CONN), HostPresent(ELSEWHERE, ELSEWHERE)]
    assert signals.sent == told, "both at once"
    await clock.wait_for_timer()
    clock.advance(FLUSH_S)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert signals.sent == told


def test_after_a_gap_every_eligible_link_is_announced(presence, links, signals):
    links.admit(RecordedControlLink(HOST, CONN))
    links.admit(RecordedControlLink(ELSEWHERE, CONN, eligible=False))
    presence.announce_all()
    assert signals.sent == [HostPresent(HOST, CONN)]
