"""Windows and positions of one direction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.channel.flow import Arrivals, Departures
from bothy_wire.errors import ChannelError, LocalError


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 50))
def test_what_keeps_to_the_credit_is_admitted(counts, window):
    departures, arrivals = Departures(), Arrivals(window)
    for index, count in enumerate(counts):
        sent = min(count, departures.credit(window))
        departures.send(sent)
        arrivals.admit(sent)
        assert arrivals.arrive(sent) == sent
        assert arrivals.received - arrivals.settled <= window
        if index % 3 == 0:
            arrivals.settle((arrivals.received - arrivals.settled) // 2)
            departures.acknowledge(arrivals.acknowledgeable)
    arrivals.settle(arrivals.received - arrivals.settled)
    assert arrivals.settled == arrivals.received
    departures.acknowledge(arrivals.acknowledgeable)
    assert departures.credit(window) == window


def test_one_byte_beyond_the_window_is_refused():
    arrivals = Arrivals(10)
    arrivals.admit(10)
    arrivals.arrive(10)
    with pytest.raises(ChannelError):
        arrivals.admit(1)
    arrivals.settle(1)
    arrivals.admit(1)


def test_a_smaller_window_waits_for_what_is_in_flight():
    departures = Departures()
    departures.send(20)
    assert departures.credit(10) == 0
    departures.acknowledge(15)
    assert departures.credit(10) == 5


def test_exit_needs_no_window():
    departures = Departures()
    departures.send(10)
    departures.send(1)
    assert departures.credit(10) == 0


@pytest.mark.parametrize("position", [4, 11])
def test_an_acknowledgement_of_the_past_or_of_the_future_is_refused(position):
    departures = Departures()
    departures.send(10)
    departures.acknowledge(5)
    with pytest.raises(ChannelError):
        departures.acknowledge(position)
    with pytest.raises(ChannelError):
        departures.resume(position)
    departures.acknowledge(5)


def test_what_the_peer_holds_counts_against_the_window_of_the_next_channel():
    departures = Departures()
    departures.send(20)
    departures.resume(15)
    assert departures.credit(20) == 5


def test_the_highest_position_is_kept():
    departures = Departures()
    departures.send(15)
    departures.restart(5)
    assert (departures.sent, departures.acknowledged, departures.reached) == (5, 5, 15)
    departures.restart(100)
    assert departures.reached == 100


@pytest.mark.parametrize("count", [-1, 4])
def test_settling_what_was_not_received_is_our_own_fault(count):
    arrivals = Arrivals(10)
    arrivals.arrive(3)
    with pytest.raises(LocalError):
        arrivals.settle(count)


def test_a_restart_leaves_what_is_unsettled_to_the_old_count():
    arrivals = Arrivals(10)
    arrivals.arrive(7)
    arrivals.settle(2)
    arrivals.restart(100)
    arrivals.admit(10)
    arrivals.arrive(10)
    arrivals.settle(6)
    assert arrivals.settled == 101
    arrivals.settle(9)
    assert arrivals.settled == arrivals.received
    with pytest.raises(LocalError):
        arrivals.settle(1)


def test_a_resume_repeats_without_doubling():
    arrivals = Arrivals(10)
    arrivals.arrive(8)
    arrivals.settle(3)
    arrivals.resume(3)
    arrivals.settle(4)
    assert arrivals.acknowledgeable == 3
    assert arrivals.arrive(2) == 0
    assert arrivals.acknowledgeable == 5
    assert arrivals.arrive(5) == 2
    assert arrivals.received == 10
