from __future__ import annotations

import pytest

from bothy_host.output import Output


class Paper:
    """A screen that everything is written on."""

    behind = False

    def __init__(self):
        self.shown = b""

    def feed(self, output):
        self.shown += output

    def resize(self, columns, rows):
        self.shown += b"<%dx%d>" % (columns, rows)

    async def repaint(self):
        return b"picture of " + self.shown

    def close(self):
        pass


def make(replay=100, window=50, hold=10.0):
    return Output(Paper(), replay_bytes=replay, window=window, hold=hold, now=0.0)


def watched(output):
    output.joining(output.end)
    output.joined()
    return output


def test_a_watching_device_sets_the_pace():
    output = watched(make())
    assert output.wants(0, 30) == 30
    output.printed(b"x" * 20)
    assert output.wants(0, 30) == 10
    assert not output.complete
    assert output.take(15) == b"x" * 15
    assert output.take(15) == b"x" * 5
    assert output.complete
    assert output.wants(0, 0) == 0
    assert output.deadline() is None


def test_without_a_device_nothing_is_sent():
    output = make()
    output.printed(b"x")
    assert output.take(100) == b""
    assert not output.complete


def test_an_absent_person_stops_the_program_for_the_hold_only():
    output = watched(make())
    output.printed(b"x" * 40)
    output.take(40)
    output.acknowledged(30)
    output.left(5.0)
    output.left(7.0)
    assert output.wants(5.0, 0) == 90
    assert output.deadline() is None
    output.printed(b"y" * 90)
    assert output.wants(14.9, 0) == 0
    assert output.deadline() == 15.0
    assert output.wants(15.0, 0) > 0
    output.printed(b"z" * 100)
    assert output.start == 230 - 150


def test_replay_bytes_of_an_absence_are_kept_on_top_of_a_window_in_flight():
    output = watched(make(replay=100, window=50))
    output.printed(b"w" * 50)
    output.take(50)
    output.left(0.0)
    output.printed(b"a" * 100)
    assert output.start == 0, "nothing was acknowledged and everything is kept"
    output.printed(b"b")
    assert output.start == 1


def test_a_program_that_never_stops_is_read_on_behind_the_hold_and_costs_no_more():
    output = make(replay=100, window=50, hold=10.0)
    output.printed(b"x" * 100)
    assert output.wants(9.9, 0) == 0
    for _ in range(100):
        assert output.wants(10.0, 0) > 0
        output.printed(b"y" * 40)
    assert output.end - output.start == 150


def test_a_device_that_comes_for_a_moment_starts_the_hold_over():
    output = watched(make())
    output.left(0.0)
    output.joining(0)
    output.joined()
    output.left(8.0)
    output.printed(b"x" * 100)
    assert output.deadline() == 18.0


def test_a_device_that_joins_stops_reading_and_may_go_again():
    output = make()
    output.printed(b"abc")
    output.joining(3)
    assert output.wants(0, 100) == 0
    output.joining(2)
    output.left(50.0)
    assert output.wants(9.9, 0) == 97, "the absence still counts from its own beginning"
    output.joining(1)
    output.joined()
    assert output.take(100) == b"bc"


def test_a_second_device_cannot_join_a_watched_session():
    output = watched(make())
    with pytest.raises(AssertionError):
        output.joining(0)


@pytest.mark.parametrize("end", ["joined", "left"])
def test_what_is_printed_while_a_device_joins_is_not_on_its_repaint_but_behind_it(end):
    output = make()
    output.printed(b"before")
    output.joining(output.end)
    output.printed(b"-between")
    assert output._screen.shown == b"before"
    if end == "joined":
        output.joined()
        assert output.take(100) == b"-between"
    else:
        output.left(1.0)
    assert output._screen.shown == b"before-between"


def test_what_no_device_took_is_counted():
    output = watched(make())
    output.printed(b"x" * 20)
    output.acknowledged(8)
    assert output.unacknowledged == 12
    output.left(0)
    output.joining(output.end)
    output.joined()
    assert output.unacknowledged == 0


def test_what_a_program_printed_at_its_exit_is_sent_however_much_it_is():
    output = watched(make(replay=100, window=50))
    output.printed(b"z" * 1000)
    assert output.take(400) == b"z" * 400
    assert output.take(1000) == b"z" * 600
    assert output.complete


def test_a_screen_that_is_behind_holds_up_the_program():
    output = watched(make())
    output._screen.behind = True
    assert output.wants(0, 30) == 0
    output._screen.behind = False
    assert output.wants(0, 30) == 30
