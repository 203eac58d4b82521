"""The waiting time before another dial: jittered from the first try, doubling, spread also at the cap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.backoff import Backoff, delay

BACKOFF = Backoff()


@pytest.mark.parametrize(
    ("first", "tries", "low", "high"),
    [
        (BACKOFF.soon, 0, 0.2, 1.0),
        (BACKOFF.soon, 1, 0.4, 2.0),
        (BACKOFF.soon, 3, 1.6, 8.0),
        (BACKOFF.soon, 4, 3.0, 15.0),
        (BACKOFF.later, 0, 1.0, 3.0),
        (BACKOFF.later, 2, 4.0, 12.0),
        (BACKOFF.later, 1000, 5.0, 15.0),
    ],
)
def test_the_steps(first, tries, low, high):
    assert delay(first, tries, 15.0, 0.0) == pytest.approx(low)
    assert delay(first, tries, 15.0, 1.0) == pytest.approx(high)


@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(1, 1000))
def test_never_above_the_cap(tries, chance, cap):
    assert 0.2 <= delay(BACKOFF.soon, tries, cap, chance) <= max(cap, 1.0) * 1.000001


def test_a_cap_below_the_first_step_leaves_it():
    assert delay(BACKOFF.later, 5, 0.1, 1.0) == 3.0
