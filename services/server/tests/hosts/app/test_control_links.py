"""The connections of a host on one node hear of one another; a late clean-up harms no newer one (D6)."""

from uuid import UUID

import pytest

from bothy_kit.recorded import RecordedControlLink
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_wire.frames import HostPending, HostSessionOpen

HOST, OTHER = UUID(int=1), UUID(int=2)
OPEN = HostSessionOpen(
    session_id=UUID(int=7), data_path="/path", profile="shell", session_user="alex-shell", expires_at=9.0
)


def link(number=9, host_id=HOST, **fields):
    return RecordedControlLink(host_id, UUID(int=number), **fields)


@pytest.fixture
def links():
    return ControlLinks()


def admitted(links, link):
    links.register(link)
    links.admit(link)
    return link


def test_nothing_is_there_at_first(links):
    assert list(links) == []
    assert not links.has(HOST)
    assert not links.send(HOST, HostPending())
    assert not links.dial(HOST, OPEN)


def test_who_proved_nothing_yet_takes_nobodys_place(links):
    """Whoever dials may name any host; until then it only hears that the row changed (E2a)."""
    trusted = admitted(links, link())
    stranger = link(10)
    links.register(stranger)
    assert list(links) == [trusted]
    links.announced(HOST, UUID(int=11))
    links.gone(HOST, UUID(int=11))
    links.judge_again(HOST)
    assert (trusted.judged, stranger.judged) == (1, 1)
    assert stranger.told == []
    links.unregister(stranger)
    assert list(links) == [trusted]
    assert trusted.told == [("announced", UUID(int=11)), ("gone", UUID(int=11))]


def test_a_change_is_read_by_every_connection_of_its_host(links):
    one, other, elsewhere = admitted(links, link()), link(), admitted(links, link(host_id=OTHER))
    links.register(other)
    links.judge_again(HOST)
    links.judge_again(UUID(int=3))
    assert [each.judged for each in (one, other, elsewhere)] == [1, 1, 0]
    links.judge_all_again()
    assert [each.judged for each in (one, other, elsewhere)] == [2, 2, 1]
    links.unregister(one)
    links.judge_all_again()
    assert [each.judged for each in (one, other, elsewhere)] == [2, 3, 2]


def test_connections_of_one_host_hear_of_one_another(links):
    older, newer, elsewhere = (admitted(links, each) for each in (link(1), link(2), link(3, OTHER)))
    assert links.older(newer) == {older.conn_id}
    assert links.older(older) == frozenset()
    older.told.clear()
    newer.told.clear()
    links.announced(HOST, newer.conn_id)
    assert older.told == [("announced", newer.conn_id)]
    links.unregister(newer)
    assert older.told[1:] == [("gone", newer.conn_id)]
    assert elsewhere.told == []


def test_one_that_is_admitted_hears_of_those_that_have_reported(links):
    reported, silent = admitted(links, link(2)), admitted(links, link(3, eligible=False))
    late = admitted(links, link(1))
    assert late.told == [("announced", reported.conn_id)]
    assert silent.closed == reported.closed == []


def test_a_link_that_is_admitted_again_stays_and_is_no_news_to_itself(links):
    again = admitted(links, link())
    links.admit(again)
    assert (again.closed, again.told, list(links)) == ([], [], [again])


def test_a_late_end_of_an_older_link_leaves_the_newer_one(links):
    older, newer = admitted(links, link(1)), admitted(links, link(2))
    links.unregister(older)
    assert list(links) == [newer]
    links.unregister(newer)
    links.unregister(newer)
    assert not links.has(HOST)
    links.judge_again(HOST)
    assert (older.judged, newer.judged) == (0, 0)


def test_the_newest_that_reported_is_spoken_to(links):
    older, newer, silent = (admitted(links, each) for each in (link(1), link(2), link(3, eligible=False)))
    assert links.send(HOST, HostPending())
    assert [each.sent for each in (older, newer, silent)] == [[], [HostPending()], []]


def test_only_where_nothing_speaks_against_it_a_host_is_told_to_open(links):
    waiting = admitted(links, link(contested=True))
    assert links.send(HOST, HostPending())
    assert not links.dial(HOST, OPEN)
    waiting.contested = False
    assert waiting.deferred == [OPEN.session_id], "it waits for that"
    assert links.dial(HOST, OPEN)
    assert waiting.sent == [HostPending(), OPEN]
    assert waiting.deferred == [OPEN.session_id]


def test_links_may_go_while_they_are_walked_through(links):
    for host_id in (HOST, OTHER):
        admitted(links, link(host_id=host_id))
    for each in links:
        links.unregister(each)
    assert list(links) == []
