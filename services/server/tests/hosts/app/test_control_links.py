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


def test_a_newer_link_closes_the_older_one_of_its_host_only(links):
    older, newer, other = link(), link(), link(OTHER)
    for each in (older, other, newer):
        links.register(each)
    assert (older.closed, newer.closed, other.closed) == ([4009], [], [])
    assert links.of(HOST) is newer
    assert set(links) == {newer, other}


def test_a_link_that_is_registered_again_stays(links):
    waiting = link(eligible=False)
    links.register(waiting)
    links.register(waiting)
    assert waiting.closed == []
    assert links.of(HOST) is waiting


def test_a_late_end_of_an_older_link_leaves_the_newer_one(links):
    older, newer = link(), link()
    links.register(older)
    links.register(newer)
    links.unregister(older)
    assert links.of(HOST) is newer
    links.unregister(newer)
    links.unregister(newer)
    assert links.of(HOST) is None


def test_only_an_eligible_link_is_told_to_open(links):
    waiting = link(eligible=False)
    links.register(waiting)
    assert links.eligible(HOST) is None
    assert links.send(HOST, HostPending()) is False
    waiting.eligible = True
    assert links.eligible(HOST) is waiting
    assert links.send(HOST, HostPending()) is True
    assert waiting.sent == [HostPending()]


def test_links_may_go_while_they_are_walked_through(links):
    for host_id in (HOST, OTHER):
        links.register(link(host_id))
    for each in links:
        links.unregister(each)
    assert list(links) == []
