from __future__ import annotations

import pytest

from bothy_host.repaint import RESET
from bothy_host.tail import TailScreen


def tail(*output: bytes, limit: int = 8) -> bytes:
    screen = TailScreen(limit)
    for part in output:
        screen.feed(part)
    return screen.repaint()


def test_everything_is_not_cut():
    assert tail(b"") == b""
    assert tail(b"abc\n", b"def") == RESET + b"abc\ndef"


@pytest.mark.parametrize(
    ("output", "painted"),
    [
        (b"1m half a line\nwhole\n", b"whole\n"),
        (b"2;5;1Hab\x1b[2;1Hgo", b"\x1b[2;1Hgo"),
        (b"abcde\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", b"\xe2\x82\xac\xe2\x82\xac"),
        (b"abcdefgh\n", b""),
    ],
)
def test_a_cut_begins_where_a_terminal_may_begin(output, painted):
    assert tail(output) == RESET + painted
