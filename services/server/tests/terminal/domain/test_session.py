from itertools import permutations

import pytest

from bothy_server.terminal.domain.session import TRANSITIONS, Row, SessionState, newest, sources

OPENING, ACTIVE, DETACHED, CLOSED = SessionState


def test_nothing_leaves_closed():
    assert not any(move.source is CLOSED for move in TRANSITIONS)


def test_every_state_can_be_closed():
    assert sources(CLOSED) == {OPENING, ACTIVE, DETACHED}


def test_only_a_running_session_is_detached():
    assert sources(DETACHED) == {ACTIVE}


@pytest.mark.parametrize(
    ("reason", "detail", "words"),
    [
        ("idle", None, "idle"),
        ("open_failed", "open_timeout", "open_failed: open_timeout"),
        ("open_failed", None, "open_failed"),
        (None, None, ""),
    ],
)
def test_the_words_of_an_end(reason, detail, words):
    assert Row(CLOSED, 1, close_reason=reason, close_detail=detail).end == words


@pytest.mark.parametrize(
    ("row", "never_met"),
    [(Row(OPENING, 1), True), (Row(OPENING, 1, paired=True), False), (Row(CLOSED, 1), False), (Row(ACTIVE, 1), False)],
)
def test_which_row_never_met(row, never_met):
    assert row.never_met is never_met


@pytest.mark.parametrize(
    ("row", "outlived"),
    [
        (Row(ACTIVE, 1, paired_seq=3), False),
        (Row(OPENING, 1, paired_seq=3), False),
        (Row(DETACHED, 1, paired_seq=3), True),
        (Row(CLOSED, 1, paired_seq=3), True),
        (Row(ACTIVE, 1, paired_seq=4), True),
        (Row(DETACHED, 1, paired_seq=2), False),
    ],
)
def test_when_a_detached_write_would_change_nothing(row, outlived):
    assert row.outlived(3) is outlived


HISTORY = [
    Row(OPENING, 1),
    Row(OPENING, 2),
    Row(OPENING, 2, paired=True, paired_seq=1),
    Row(ACTIVE, 2, paired=True, paired_seq=1),
    Row(DETACHED, 2, paired=True, paired_seq=1),
    Row(ACTIVE, 3, paired=True, paired_seq=2),
    Row(CLOSED, 3, paired=True, paired_seq=2, close_reason="idle"),
]


def test_rows_in_any_order_leave_the_newest_known():
    for order in permutations(HISTORY):
        known = None
        for row in order:
            known = newest(known, row)
        assert known == HISTORY[-1]


def test_an_older_row_changes_nothing():
    for index, known in enumerate(HISTORY):
        for older in HISTORY[: index + 1]:
            assert newest(known, older) == known
