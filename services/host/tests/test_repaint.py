from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_host.repaint import strip_queries

QUERIES = [
    b"\x1b[c",
    b"\x1b[0c",
    b"\x1b[>c",
    b"\x1b[>0c",
    b"\x1b[=c",
    b"\x1b[5n",
    b"\x1b[6n",
    b"\x1b[?6n",
    b"\x1b[?996n",
    b"\x1b[?2004$p",
    b"\x1b[4$p",
    b"\x1b[>q",
    b"\x1b[>0q",
    b"\x1b[x",
    b"\x1b[1$w",
    b"\x1b[?u",
    b"\x1b[?4m",
    b"\x1b[1;1;1;1;1;1*y",
    b"\x1b[?1;1;0S",
    b"\x1b[21t",
    b"\x1b[14;2t",
    b"\x1b[018t",
    b"\x1b[5i",
    b"\x1b[?2048h",
    b"\x1b[?7;2048h",
    b"\x1bZ",
    b"\x05",
    b"\x1b]10;?\x07",
    b"\x1b]11;?\x1b\\",
    b"\x1b]4;1;?;2;?\x07",
    b"\x1b]12;#fff;?\x07",
    b"\x1b]52;c;?\x07",
    b"\x1b]52;c;cm0gLXJm\x1b\\",
    b"\x1b]21;foreground=?\x1b\\",
    b"\x1b]60\x1b\\",
    b"\x1b]1337;ReportCellSize\x07",
    b"\x1bP$qm\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1bPtmux;\x1b\x1b[c\x1b\\",
    b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
    b"\x1b[\n6\x00n",
    b"\x1b]1\n0;?\x07",
]
KEPT = [
    b"\x1b[31;1m",
    b"\x1b[2J\x1b[H",
    b"\x1b[?1049h",
    b"\x1b[?2004h",
    b"\x1b[?1000;1006h",
    b"\x1b[2 q",
    b"\x1b[8;24;80t",
    b"\x1b[22;0t",
    b"\x1b[3;10r",
    b"\x1b]0;a title; is it?\x07",
    b"\x1b]8;;https://example.com/?a=b\x1b\\link\x1b]8;;\x1b\\",
    b"\x1b]2;\xe2\x9c\x93 done\x1b\\",
    b"\x1b]10;#ffffff\x07",
    b"\x1b(0lqk\x1b(B",
    b"\x1b7\x1b8\x1bM",
    "grün € \U0001f600".encode(),
    b"\x9c\xff\xfe",
]


@pytest.mark.parametrize("query", QUERIES)
def test_what_a_terminal_would_answer_is_gone(query):
    assert b"a%sb" % query not in strip_queries(b"a%sb" % query)
    assert b"\x1b[c" not in strip_queries(query)


@pytest.mark.parametrize("query", [query for query in QUERIES if b"tmux" not in query])
def test_nothing_else_is_gone(query):
    assert strip_queries(b"a" + query + b"b") == b"a\x18b"


@pytest.mark.parametrize("output", KEPT)
def test_what_paints_stays(output):
    assert strip_queries(output) == output


def test_taking_one_out_does_not_make_another():
    assert strip_queries(b"\x1b\x1b[6n[6n") == b"\x1b\x18[6n"
    assert strip_queries(b"\x1b[\x1b[6n6n") == b"\x1b[\x186n"


@given(st.lists(st.sampled_from([*QUERIES, *KEPT, b"\x1b", b"[", b"6n", b"\x1b]", b"\x1bP", b"\x1b\\", b"x"])))
def test_stripping_again_finds_nothing(parts):
    once = strip_queries(b"".join(parts))
    assert strip_queries(once) == once


def test_a_long_output_is_stripped_in_time_that_grows_with_its_length():
    hostile = b"\x1b]4;" + b"1;" * 130_000 + b"\x1b[" + b"1;" * 130_000
    assert strip_queries(hostile) == hostile


@pytest.mark.parametrize(
    "query",
    ["\x9bc", "\x9b6n", "\x9a", "\x90$qm\x9c", "\x9d52;c;?\x07", "\x1b]2;t\x9c\x9b6n\x07", "\x1b\x9b[c", "\x1b[\x9b6n"],
)
def test_controls_of_one_character_are_gone_too(query):
    stripped = strip_queries(b"a" + query.encode() + b"b")
    assert not any(b"\xc2%c" % control in stripped for control in range(0x80, 0xA0))
    assert strip_queries(stripped) == stripped


def test_taking_a_control_out_makes_no_other():
    assert b"\xc2\x9b" not in strip_queries(b"\xc2\xc2\x9b\x9b6n")
    assert strip_queries("Â£ ä".encode()) == "Â£ ä".encode()
