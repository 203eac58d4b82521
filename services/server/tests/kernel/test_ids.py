"""Ids sort by the time they were made, and tell it."""

from datetime import UTC, datetime, timedelta

from bothy_server.kernel.ids import new_id, time_of
from bothy_wire.ids import parse_id

AT = datetime(2026, 1, 1, 12, 30, 15, 123000, tzinfo=UTC)


def test_an_id_tells_its_instant_to_the_millisecond():
    assert time_of(new_id(AT)) == AT
    assert time_of(new_id(AT + timedelta(microseconds=999))) == AT


def test_ids_sort_by_time_and_differ():
    made = [new_id(AT + timedelta(milliseconds=passed)) for passed in range(100)]
    assert made == sorted(made)
    assert len({new_id(AT) for _ in range(100)}) == 100


def test_an_id_is_one_of_the_wire():
    made = new_id(AT)
    assert (made.version, parse_id(str(made))) == (7, made)
