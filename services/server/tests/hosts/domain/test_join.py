"""The join counter: an honest host is never behind, of two copies one always is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_server.hosts.domain.join import FIRST, Behind, Joined, judge


@pytest.mark.parametrize(
    ("presented", "confirmed", "offered", "verdict"),
    [
        (FIRST, 0, FIRST, Joined(1, 2)),  # the first identify after a pairing
        (2, 1, 2, Joined(2, 3)),  # the value that was offered last
        (1, 1, 2, Joined(1, 3)),  # the answer got lost, the host still holds the confirmed one
        (5, 3, 9, Joined(5, 10)),  # several answers got lost
        (20, 3, 9, Joined(20, 21)),  # the database was restored from a backup
        (2, 3, 9, Behind()),
        (0, 1, 2, Behind()),
    ],
)
def test_the_verdicts(presented, confirmed, offered, verdict):
    assert judge(presented, confirmed, offered) == verdict


counters = st.integers(min_value=0, max_value=2**40)


@given(presented=counters, confirmed=counters, offered=counters)
def test_what_is_offered_is_above_everything_known(presented, confirmed, offered):
    verdict = judge(presented, confirmed, offered)
    if presented < confirmed:
        assert verdict == Behind()
    else:
        assert verdict.confirmed == presented
        assert verdict.offered > max(presented, offered)


@given(st.lists(st.booleans(), max_size=30))
def test_a_host_whose_answers_get_lost_is_never_behind(arrives):
    """It goes on with what it stored last."""
    stored, confirmed, offered = FIRST, 0, FIRST
    for answer_arrives in arrives:
        verdict = judge(stored, confirmed, offered)
        assert isinstance(verdict, Joined)
        confirmed, offered = verdict.confirmed, verdict.offered
        stored = offered if answer_arrives else stored


@given(before=st.integers(min_value=0, max_value=5), turns=st.lists(st.sampled_from(["host", "copy"]), min_size=1))
def test_of_two_copies_that_never_meet_the_second_is_behind(before, turns):
    """A report confirms what was offered, so the state folder as it was copied is passed with the first identify."""
    stored, confirmed, offered = FIRST, 0, FIRST
    for _ in range(before):
        verdict = judge(stored, confirmed, offered)
        stored = confirmed = offered = verdict.offered
    copies = dict.fromkeys(["host", "copy"], stored)
    for who in turns:
        verdict = judge(copies[who], confirmed, offered)
        assert (verdict == Behind()) is (who != turns[0])
        if isinstance(verdict, Joined):
            copies[who] = confirmed = offered = verdict.offered
