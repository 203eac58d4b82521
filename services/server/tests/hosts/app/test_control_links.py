"""One control connection a host on this node: the newest; a late clean-up harms no newer one (D6)."""

from uuid import UUID

import pytest

from bothy_kit.recorded import RecordedControlLink
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_wire.frames import HostPending

HOST, OTHER = UUID(int=1), UUID(int=2)


def link(host_id=HOST, **fields):
    return RecordedControlLink(host_id, UUID(int=9), **fields)


@pytest.fixture
def links():
    return ControlLinks()


def test_nothing_is_there_at_first(links):
    assert list(links) == []
    assert links.of(HOST) is None
    assert links.eligible(HOST) is None
    assert links.send(HOST, HostPending()) is False


def admitted(links, link):
    links.register(link)
    links.admit(link)
    return link


def test_a_newer_link_closes_the_older_one_of_its_host_only(links):
    older, other, newer = admitted(links, link()), admitted(links, link(OTHER)), admitted(links, link())
    assert (older.closed, newer.closed, other.closed) == ([4009], [], [])
    assert links.of(HOST) is newer
    assert set(links) == {newer, other}


def test_a_link_that_is_admitted_again_stays(links):
    again = admitted(links, link())
    links.admit(again)
    assert again.closed == []
    assert links.of(HOST) is again


def test_who_proved_nothing_yet_takes_nobodys_place(links):
    """Whoever dials may name any host; until then it only hears that the row changed (E2a)."""
    trusted = admitted(links, link())
    stranger = link()
    links.register(stranger)
    assert links.of(HOST) is trusted
    assert list(links) == [trusted]
    assert trusted.closed == []
    links.judge_again(HOST)
    assert (trusted.judged, stranger.judged) == (1, 1)
    links.unregister(stranger)
    assert links.of(HOST) is trusted


def test_a_change_is_read_by_every_connection_of_its_host(links):
    one, other, elsewhere = admitted(links, link()), link(), admitted(links, link(OTHER))
    links.register(other)
    links.judge_again(HOST)
    links.judge_again(UUID(int=3))
    assert [each.judged for each in (one, other, elsewhere)] == [1, 1, 0]
    links.judge_all_again()
    assert [each.judged for each in (one, other, elsewhere)] == [2, 2, 1]
    links.unregister(one)
    links.judge_all_again()
    assert [each.judged for each in (one, other, elsewhere)] == [2, 3, 2]


def test_a_late_end_of_an_older_link_leaves_the_newer_one(links):
    older, newer = admitted(links, link()), admitted(links, link())
    links.unregister(older)
    assert links.of(HOST) is newer
    links.unregister(newer)
    links.unregister(newer)
    assert links.of(HOST) is None
    links.judge_again(HOST)
    assert (older.judged, newer.judged) == (0, 0)


def test_only_an_eligible_link_is_told_to_open(links):
    waiting = admitted(links, link(eligible=False))
    assert links.eligible(HOST) is None
    assert links.send(HOST, HostPending()) is False
    waiting.eligible = True
    assert links.eligible(HOST) is waiting
    assert links.send(HOST, HostPending()) is True
    assert waiting.sent == [HostPending()]


def test_links_may_go_while_they_are_walked_through(links):
    for host_id in (HOST, OTHER):
        admitted(links, link(host_id))
    for each in links:
        links.unregister(each)
    assert list(links) == []
