from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_server.kernel.rates import Rate, RateTable, Taken, take

RATES = st.builds(Rate, st.integers(1, 50), st.sampled_from([1.0, 60.0, 3600.0]))
GAPS = st.lists(st.floats(0, 200, allow_nan=False), max_size=60)
THREE = Rate(3, 60)


def moments(gaps: list[float]) -> list[float]:
    now, found = 1000.0, []
    for gap in gaps:
        now += gap
        found.append(now)
    return found


def allowed(rate: Rate, at: list[float]) -> list[float]:
    """The moments at which it may happen."""
    whole_at, found = 0.0, []
    for now in at:
        taken = take(whole_at, now, rate)
        whole_at = taken.whole_at
        if not taken.wait_s:
            found.append(now)
    return found


def test_as_many_as_the_rate_says_may_come_at_once_and_then_one_for_each_share_of_the_period() -> None:
    assert allowed(THREE, [0, 0, 0, 0, 19.9, 20, 20, 39.9, 40, 60, 60]) == [0, 0, 0, 20, 40, 60]


@given(RATES)
def test_the_whole_allowance_may_come_at_once_whatever_its_shares_sum_up_to(rate: Rate) -> None:
    assert len(allowed(rate, [5.0] * (rate.count + 1))) == rate.count


@given(RATES, GAPS)
def test_no_stretch_of_time_sees_more_than_the_burst_and_what_came_back_meanwhile(
    rate: Rate, gaps: list[float]
) -> None:
    passed = allowed(rate, moments(gaps))
    for first, start in enumerate(passed):
        for last, end in enumerate(passed[first:], first):
            assert last - first + 1 <= rate.count + (end - start) * rate.count / rate.period_s + 1e-3


@given(RATES, GAPS)
def test_it_agrees_with_a_bucket_that_leaks(rate: Rate, gaps: list[float]) -> None:
    """The same rule told the other way: what is in the bucket, not when it will be empty."""
    filled, last, whole_at = 0.0, 1000.0, 0.0
    for now in moments(gaps):
        filled, last = max(0.0, filled - (now - last) * rate.count / rate.period_s), now
        taken = take(whole_at, now, rate)
        whole_at = taken.whole_at
        if abs(filled + 1 - rate.count) > 1e-3:  # at the brim itself rounding decides
            assert (not taken.wait_s) == (filled + 1 <= rate.count)
        if not taken.wait_s:
            filled += 1


@given(RATES, GAPS, st.floats(0, 200, allow_nan=False))
def test_a_refusal_takes_nothing_and_says_exactly_when_it_will_pass(rate: Rate, gaps: list[float], gap: float) -> None:
    whole_at = 0.0
    for now in moments(gaps):
        whole_at = take(whole_at, now, rate).whole_at
    now = 1000.0 + sum(gaps) + gap
    taken = take(whole_at, now, rate)
    if taken.wait_s:
        assert taken.whole_at == whole_at
        assert take(whole_at, now + taken.wait_s, rate).wait_s == 0
        assert take(whole_at, now + taken.wait_s - 1e-3, rate).wait_s > 0
    else:
        assert taken == Taken(pytest.approx(max(whole_at, now) + rate.period_s / rate.count), 0)


def test_subjects_do_not_share_an_allowance() -> None:
    table = RateTable(THREE, 10)
    assert [table.take("one", 0) for _ in range(4)] == [0, 0, 0, 20]
    assert table.take("other", 0) == 0
    assert [table.take("one", 20), table.take("one", 20)] == [0, 20]


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 30, allow_nan=False)), max_size=200), st.integers(1, 20))
def test_a_table_never_grows_beyond_its_bound_and_refuses_nobody_it_does_not_know(
    calls: list[tuple[int, float]], most: int
) -> None:
    table, now, seen = RateTable(THREE, most), 0.0, set()
    for number, gap in calls:
        now += gap
        wait = table.take(str(number), now)
        assert number in seen or wait == 0
        seen.add(number)
        assert len(table) <= most


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 30, allow_nan=False)), max_size=100))
def test_while_there_is_room_a_table_is_the_rule_for_each_subject(calls: list[tuple[int, float]]) -> None:
    table, now, alone = RateTable(THREE, 6), 0.0, dict.fromkeys(range(6), 0.0)
    for number, gap in calls:
        now += gap
        taken = take(alone[number], now, THREE)
        alone[number] = taken.whole_at
        assert table.take(str(number), now) == pytest.approx(taken.wait_s)


def test_who_is_whole_again_is_forgotten_first() -> None:
    table = RateTable(THREE, 2)
    table.take("whole", 0)
    for _ in range(3):
        table.take("owes", 10)
    table.take("new", 21)
    assert table.take("owes", 21) > 0
    assert len(table) == 2


def test_a_flood_of_new_subjects_pushes_out_its_own_and_not_those_that_owe_more() -> None:
    """Whoever wants its debt forgotten needs more than the table holds of others that owe more than itself."""
    table = RateTable(THREE, 100)
    for _ in range(3):
        table.take("guesser", 0)
    for number in range(10_000):
        table.take(str(number), 1)
    assert table.take("guesser", 1) > 0
    assert len(table) == 100
