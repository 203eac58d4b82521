"""Signals and events about hosts: whoever is concerned reads the row again."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from bothy_kit.recorded import RecordedControlLink, RecordedSignals
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.host_signals import HostSignals
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.domain.presence import PresenceLimits
from bothy_server.hosts.domain.signals import HostClose, HostGone, HostPresent
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import Event
from bothy_server.terminal.domain.signals import SessionOpen

HOST, OTHER, ELSEWHERE = UUID(int=1), UUID(int=2), UUID(int=3)
CONN = UUID(int=9)


@pytest.fixture
def here():
    """Links of two hosts; one of them has not reported yet."""
    return [RecordedControlLink(HOST, CONN), RecordedControlLink(OTHER, CONN, eligible=False)]


@pytest.fixture
def signals():
    return RecordedSignals()


@pytest.fixture
def links(here):
    links = ControlLinks()
    for link in here:
        links.register(link)
        links.admit(link)
    return links


@pytest.fixture
def presence(links, signals, clock):
    return Presence(links, signals, clock, PresenceLimits(10, 3), 0.25)


@pytest.fixture
def host_signals(links, presence):
    return HostSignals(links, presence)


def logged(*events):
    return [LoggedEvent(position, event, datetime.now(UTC)) for position, event in enumerate(events, 1)]


async def test_host_close_makes_the_link_of_this_host_read_its_row(host_signals, here):
    await host_signals.handle([HostClose(HOST), HostClose(ELSEWHERE)])
    assert [link.judged for link in here] == [1, 0]


async def test_presence_is_taken_from_the_others(host_signals, presence):
    await host_signals.handle([HostPresent(ELSEWHERE, CONN)])
    assert presence.connected(ELSEWHERE)
    await host_signals.handle([HostGone(ELSEWHERE, CONN)])
    assert not presence.connected(ELSEWHERE)


async def test_signals_of_others_change_nothing(host_signals, presence, here):
    await host_signals.handle([SessionOpen(HOST, UUID(int=5))])
    assert [link.judged for link in here] == [0, 0]
    assert not presence.connected(HOST)


async def test_an_event_about_a_host_makes_its_link_read_the_row(host_signals, here):
    await host_signals.on_events(
        logged(
            Event("host.updated", host_id=OTHER),
            Event("host.updated"),
            Event("terminal_session.changed", host_id=HOST),
            Event("host.updated", host_id=ELSEWHERE),
        )
    )
    assert [link.judged for link in here] == [0, 1]


async def test_after_a_gap_every_link_reads_and_the_eligible_are_announced(host_signals, here, signals):
    await host_signals.on_gap()
    assert [link.judged for link in here] == [1, 1]
    assert signals.sent == [HostPresent(HOST, CONN)]
