from __future__ import annotations

from bothy_device.display import Display
from bothy_device.events import Discard, Show


def test_only_output_counts_however_the_terminal_takes_it():
    display = Display()
    display.opened(exact=False)
    assert display.repaint(b"picture", last=True) == [Show(b"picture")]
    assert display.output(b"more") == [Show(b"more")]
    assert display.written(6) == 0
    assert display.written(3) == 2
    assert display.busy
    assert display.written(2) == 2
    assert not display.busy


def test_nothing_is_shown_of_nothing():
    display = Display()
    assert display.repaint(b"", last=True) == display.output(b"") == []
    assert not display.busy


def test_a_repaint_stands_for_what_was_not_written_and_its_parts_for_nothing_more():
    display = Display()
    display.output(b"old")
    display.opened(exact=False)
    assert display.repaint(b"one", last=False) == [Discard(), Show(b"one")]
    assert display.repaint(b"two", last=True) == [Show(b"two")]
    assert display.output(b"new") == [Show(b"new")]
    assert display.repaint(b"again", last=True) == [Discard(), Show(b"again")]


def test_output_that_is_counted_anew_stands_for_what_was_not_written():
    display = Display()
    display.output(b"old")
    display.opened(exact=False)
    assert display.output(b"new") == [Discard(), Show(b"new")]


def test_output_that_goes_on_exactly_follows_what_was_not_written():
    display = Display()
    display.output(b"old")
    display.opened(exact=True)
    assert display.output(b"new") == [Show(b"new")]


def test_a_repaint_that_was_cut_off_begins_anew_on_the_next_channel():
    display = Display()
    display.repaint(b"half", last=False)
    display.opened(exact=False)
    assert display.repaint(b"whole", last=True) == [Discard(), Show(b"whole")]
