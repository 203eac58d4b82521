from __future__ import annotations

import pytest

from bothy_host.output import Output


def make(replay=100, window=50, hold=10.0):
    return Output(replay_bytes=replay, window=window, hold=hold, now=0.0)


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


def test_a_repaint_says_what_is_missing():
    output = watched(make(replay=1000))
    assert output.repaint(10) == (b"", 0)
    output.printed(b"one\ntwo\n")
    assert output.repaint(10) == (b"\x1bcone\ntwo\n", 0)
    output.acknowledged(8)
    output.left(0)
    output.printed(b"three\nfour\n")
    assert output.repaint(7) == (b"\x1bcfour\n", 4)
    assert output.repaint(11) == (b"\x1bcfour\n", 0)
