from math import inf, nextafter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_server.hosts.domain.presence import Presence, PresenceLimits, PresenceView

LIMITS = PresenceLimits(heartbeat_interval=10, miss_limit=3)
HOST, OTHER_HOST, CONN, OTHER = (UUID(int=number) for number in range(4))


@pytest.fixture
def view():
    return PresenceView(LIMITS)


def after(instant):
    return nextafter(instant, inf)


def test_presence_view(view):
    """An entry counts through the window and not one tick longer; who goes takes no other along; who is unknown is away."""
    view.seen(HOST, CONN, 100)
    assert view.connected(HOST, 100)
    assert view.connected(HOST, 130)
    assert not view.connected(HOST, after(130))
    assert not view.connected(OTHER_HOST, 100)
    view.seen(HOST, OTHER, 100)
    view.gone(HOST, CONN, 101)
    assert view.connected(HOST, 101)
    view.gone(HOST, OTHER, 102)
    assert not view.connected(HOST, 102)


def test_presence_view_ignores_what_went_for_one_window(view):
    view.gone(HOST, CONN, 5)
    view.seen(HOST, CONN, 35)
    assert not view.connected(HOST, 35)
    view.seen(HOST, OTHER, 35)
    assert view.connected(HOST, 35)
    view.gone(HOST, OTHER, 36)
    view.seen(HOST, CONN, after(35))
    assert view.connected(HOST, 36)


def test_presence_view_words(view):
    view.seen(HOST, CONN, 0)
    assert [view.presence(HOST, at) for at in (20, after(20), 30, after(30))] == [
        Presence.ONLINE,
        Presence.LOST,
        Presence.LOST,
        Presence.OFFLINE,
    ]
    view.seen(HOST, OTHER, 25)
    assert view.presence(HOST, 30) is Presence.ONLINE


def test_presence_view_of_a_connection_held_here(view):
    view.held(HOST, CONN, 0)
    view.gone(HOST, CONN, 1)  # forged or our own of long ago: only the holder knows
    view.seen(HOST, CONN, 2)  # our own signal comes back
    assert view.presence(HOST, 20) is Presence.ONLINE
    assert view.presence(HOST, 1000) is Presence.LOST
    view.sweep(1000)
    view.released(HOST, CONN, 1000)
    assert view.presence(HOST, 1000) is Presence.OFFLINE
    view.seen(HOST, CONN, 1001)  # our own last signal comes back late
    assert not view.connected(HOST, 1001)


def test_presence_view_keeps_all_while_the_listener_is_deaf_and_one_interval_longer(view):
    view.seen(OTHER_HOST, CONN, -100)  # expired before
    view.seen(HOST, CONN, 0)
    view.deaf(20)
    assert view.stale(20)
    assert view.presence(HOST, 5000) is Presence.LOST
    assert not view.connected(OTHER_HOST, 5000)
    view.sweep(5000)
    view.hearing(5000)
    view.seen(HOST, OTHER, 5001)
    assert view.stale(5010)
    assert view.connected(HOST, 5010)
    view.gone(HOST, OTHER, 5010)
    assert view.connected(HOST, 5010)
    assert not view.stale(after(5010))
    assert not view.connected(HOST, after(5010))


def test_presence_view_forgets(view):
    for number in range(1000):
        view.seen(UUID(int=number), CONN, 0)
        view.gone(UUID(int=number), OTHER, 0)
    view.sweep(30)
    assert len(view._hosts) == 1000
    view.sweep(39)
    assert len(view._hosts) == 1000  # not every call looks through all of it
    view.sweep(40)
    assert not view._hosts


STEPS = st.lists(
    st.tuples(st.sampled_from(["seen", "gone", "sweep"]), st.sampled_from([CONN, OTHER]), st.integers(0, 20)),
    max_size=30,
)


@given(STEPS)
def test_presence_view_agrees_with_a_model_that_keeps_everything(steps):
    view, log, now = PresenceView(LIMITS), [], 0
    for what, conn, wait in steps:
        now += wait
        if what == "sweep":
            view.sweep(now)
        else:
            getattr(view, what)(HOST, conn, now)
            log.append((what, conn, now))
        assert view.connected(HOST, now) == any(_counts(log, conn, now) for conn in (CONN, OTHER))


def _counts(log, conn, now):
    last_seen = last_gone = -inf
    for what, which, at in log:
        if which != conn:
            continue
        if what == "gone":
            last_seen, last_gone = -inf, at
        elif at > last_gone + LIMITS.window:
            last_seen = at
    return now - last_seen <= LIMITS.window


def test_presence_view_counts_hosts_and_not_connections(view):
    view.held(HOST, CONN, 100)
    view.seen(HOST, OTHER, 100)
    view.seen(OTHER_HOST, OTHER, 100)
    assert view.connected_hosts(130) == 2
    assert view.connected_hosts(after(130)) == 1


def test_all_that_are_connected_are_told_with_their_word(view):
    view.seen(HOST, CONN, 100)
    view.held(OTHER_HOST, OTHER, 110)
    assert view.all(110) == {HOST: Presence.ONLINE, OTHER_HOST: Presence.ONLINE}
    assert view.all(after(120)) == {HOST: Presence.LOST, OTHER_HOST: Presence.ONLINE}
    assert view.all(after(130)) == {OTHER_HOST: Presence.LOST}
