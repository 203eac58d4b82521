"""What this node says about the connections here, and what it makes of what the others say."""

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
LIMITS = PresenceLimits(heartbeat_interval=10, miss_limit=3)


@pytest.fixture
def links():
    return ControlLinks()


@pytest.fixture
def signals():
    return RecordedSignals()


@pytest.fixture
def presence(links, signals, clock):
    return Presence(links, signals, clock, LIMITS)


def test_a_link_here_is_online_and_the_others_hear_of_it(presence, signals):
    link = RecordedControlLink(HOST, CONN)
    presence.alive(link)
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


def test_after_a_gap_every_eligible_link_is_announced(presence, links, signals):
    links.admit(RecordedControlLink(HOST, CONN))
    links.admit(RecordedControlLink(ELSEWHERE, CONN, eligible=False))
    presence.announce()
    assert signals.sent == [HostPresent(HOST, CONN)]
