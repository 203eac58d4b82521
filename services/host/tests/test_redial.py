from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_host.redial import (
    Accepted,
    Dial,
    Dialling,
    Idle,
    Lost,
    Passed,
    Stop,
    Stopped,
    Up,
    Waiting,
    Wanted,
    Woke,
    deadline,
    step,
)
from bothy_wire.backoff import Backoff

BACKOFF = Backoff(cap=15, settle=60)


def after(state, event, now=100.0, client="control", chance=0.0):
    return step(state, event, now, client=client, backoff=BACKOFF, chance=chance)


@pytest.mark.parametrize("state", [Idle(), Up(0, 3), Stopped(4101)])
def test_wanted_dials(state):
    assert after(state, Wanted()) == (Dialling(0), (Dial(),))


def test_wanted_cuts_a_wait_short_but_keeps_the_step():
    assert after(Waiting(200, 4), Wanted()) == (Dialling(4), (Dial(),))


def test_wanted_while_dialling_is_ignored():
    assert after(Dialling(2), Wanted()) == (Dialling(2), ())


def test_who_wakes_dials_at_once_and_with_the_first_steps():
    assert after(Waiting(200, 4), Woke()) == (Dialling(0), (Dial(),))
    assert after(Dialling(4), Woke()) == (Dialling(0), ())
    assert after(Up(90, 4), Woke()) == (Up(90, 0), ())


@pytest.mark.parametrize("state", [Idle(), Stopped(4101)])
def test_to_wake_is_no_reason_to_dial_what_nobody_wants(state):
    assert after(state, Woke()) == (state, ())


def test_wait_passes_at_its_deadline_only():
    waiting = Waiting(100.5, 1)
    assert deadline(waiting) == 100.5
    assert after(waiting, Passed()) == (waiting, ())
    assert after(waiting, Passed(), now=100.5) == (Dialling(1), (Dial(),))


@pytest.mark.parametrize("state", [Idle(), Dialling(0), Up(0, 0), Stopped(4101)])
def test_only_waiting_has_a_deadline(state):
    assert deadline(state) is None
    assert after(state, Passed()) == (state, ())


def test_accepted():
    assert after(Dialling(3), Accepted()) == (Up(100.0, 3), ())


@pytest.mark.parametrize(
    ("code", "low", "high"), [(1006, 0.2, 1.0), (1012, 0.2, 1.0), (1011, 1.0, 3.0), (4108, 1.0, 3.0), (1099, 0.2, 1.0)]
)
def test_first_wait_is_jittered_from_the_first_try(code, low, high):
    assert after(Dialling(0), Lost(code), chance=0.0) == (Waiting(100 + low, 1), ())
    assert after(Dialling(0), Lost(code), chance=1.0) == (Waiting(100 + high, 1), ())


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True), st.sampled_from([1006, 1011]))
def test_waits_never_pass_the_cap_and_stay_spread(tries, chance, code):
    state, _ = after(Dialling(tries), Lost(code), chance=chance)
    assert isinstance(state, Waiting)
    assert 0.2 <= state.until - 100 <= 15
    assert after(Dialling(30), Lost(code), chance=0.0)[0].until < after(Dialling(30), Lost(code), chance=0.9)[0].until


def test_steps_start_over_after_a_settled_connection():
    assert after(Up(39.9, 6), Lost(1006)) == (Waiting(100.2, 1), ())
    assert after(Up(41, 6), Lost(1006))[0].tries == 7


@pytest.mark.parametrize(("client", "code"), [("control", 4101), ("control", 4112), ("data", 4100), ("data", 4199)])
def test_never_stops(client, code):
    assert after(Up(0, 0), Lost(code), client=client) == (Stopped(code), (Stop(code),))


def test_a_data_connection_that_met_nobody_waits_for_the_server():
    assert after(Up(0, 0), Lost(4102), client="data") == (Stopped(4102), (Stop(4102),))
    assert after(Stopped(4102), Wanted(), client="data") == (Dialling(0), (Dial(),))


@pytest.mark.parametrize("state", [Idle(), Stopped(4101), Waiting(200, 1)])
def test_late_news_change_nothing(state):
    assert after(state, Lost(1006)) == (state, ())
    assert after(state, Accepted()) == (state, ())
