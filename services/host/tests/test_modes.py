from __future__ import annotations

import pytest

from bothy_host.modes import Modes


def again(output: bytes) -> bytes:
    modes = Modes()
    modes.follow(output)
    return modes.again()


@pytest.mark.parametrize(
    ("output", "kept"),
    [
        (b"text", b""),
        (b"\x1b[?2004h\x1b[?2004l", b"\x1b[?2004l"),
        (b"\x1b[?1000;1006h", b"\x1b[?1000h\x1b[?1006h"),
        (b"\x1b[?25l\x1b[?1049h", b"\x1b[?1049h\x1b[?25l"),
        (b"\x1b[4h\x1b[20l", b"\x1b[4h\x1b[20l"),
        (b"\x1b[?2026h\x1b[?3h\x1b[?1048h", b""),
        (b"\x1b[31m\x1b[1m", b"\x1b[31m\x1b[1m"),
        (b"\x1b[31m\x1b[0;1m", b"\x1b[0;1m"),
        (b"\x1b[31m\x1b[m", b"\x1b[m"),
        (b"\x1b[?2004h\x1b[31m\x1bc\x1b=", b"\x1b="),
        (b"\x1b[?1h\x1b[31m\x1b[!p\x1b[1m", b"\x1b[?1h\x1b[!p\x1b[1m"),
        (b"\x1b)0\x0e\x1b(B", b"\x1b)0\x1b(B\x0e"),
        (b"\x0e\x0f\x0e\x1bc", b""),
        (b"\x1bc\x0e\x0f", b"\x0f"),
        (b"\x1b]0;one\x07\x1b]2;two\x1b\\", b"\x1b]2;two\x1b\\"),
    ],
)
def test_the_newest_of_each_kind_is_kept(output, kept):
    assert again(output) == kept


def test_a_copy_goes_its_own_way():
    modes = Modes()
    modes.follow(b"\x1b=")
    modes.copy().follow(b"\x1b>\x1b[?1h")
    assert modes.again() == b"\x1b="


def test_a_hostile_program_fills_no_memory():
    output = b"".join(b"\x1b[?%dh\x1b[38;5;%dm" % (number, number % 255) for number in range(10_000, 30_000))
    assert len(again(output + b"\x1b]2;" + b"t" * 100_000 + b"\x07")) < 2048


@pytest.mark.parametrize("sequence", [b"\x1b[?%sh", b"\x1b[%sm", b"\x1b[%sr", b"\x1b[%s q", b"\x1b]2;%s\x07"])
def test_no_sequence_is_kept_that_is_longer_than_any_in_use(sequence):
    assert len(again(sequence % (b"1" * 60_000) + sequence % b";".join([b"1"] * 30_000))) < 2048
