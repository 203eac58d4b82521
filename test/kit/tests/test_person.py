"""What a person's account is worth: it tells what is lost, doubled or changed, and knows the device's own words."""

from __future__ import annotations

import pytest

from bothy_kit.person import Account, PersonError, account
from bothy_kit.pulse import Tally, line

LINES = [line(number, 0) for number in range(100)]
PRINTED = b"".join(LINES)
STATUS = b"\x1b7\x1b[?6l\x1b[1;1H\x1b[0m\x1b[7m the relay is away \x1b[0m\x1b[K\x1b8"
WORDS = b"\r\nround trip 3 ms\r\n"
REPAINT = b"\x1bc\x1b[?7h"


def shown(printed: bytes, sent: bytes = PRINTED, typed: bytes = b"kkk") -> bytes:
    return printed + f"\rend {Tally(sent)} {Tally(typed)}\n".encode()


def test_what_came_whole_is_whole() -> None:
    assert account(shown(PRINTED), Tally(b"kkk"), 0) == Account(0, 0, 0, screen_whole=True)


@pytest.mark.parametrize("at", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("words", [STATUS, WORDS, b"\a", STATUS + WORDS + STATUS])
def test_the_devices_own_words_are_no_output(words: bytes, at: int) -> None:
    mixed = PRINTED[:at] + words + PRINTED[at:]
    assert account(shown(mixed), Tally(b"kkk"), 0) == Account(0, 0, 0, screen_whole=True)


@pytest.mark.parametrize(
    ("arrived", "lost"),
    [
        (PRINTED[:500] + PRINTED[501:], 1),
        (PRINTED[:500] + PRINTED[499:], 1),
        (PRINTED[:640] + PRINTED[1280:], 640),
        (PRINTED[:500] + b"y" + PRINTED[501:], 1),
    ],
)
def test_lost_doubled_and_changed_output_is_told(arrived: bytes, lost: int) -> None:
    assert account(shown(arrived), Tally(b"kkk"), 0).output_lost == lost


@pytest.mark.parametrize(("typed", "lost"), [(b"kkkk", 1), (b"kk", 1), (b"kkj", 1)])
def test_input_that_did_not_arrive_as_typed_is_told(typed: bytes, lost: int) -> None:
    assert account(shown(PRINTED), Tally(typed), 0).input_lost == lost


def test_behind_a_repaint_the_screen_must_go_on_without_a_hole() -> None:
    rows = b"\r\n".join(each.strip() for each in LINES[40:60]) + b"\r\n"
    good = b"".join(LINES[:10]) + REPAINT + rows + b"".join(LINES[60:])
    seen = account(shown(good), Tally(b"kkk"), 0)
    assert (seen.repaints, seen.screen_whole) == (1, True)
    holed = b"".join(LINES[:10]) + REPAINT + rows + b"".join(LINES[61:])
    assert not account(shown(holed), Tally(b"kkk"), 0).screen_whole


@pytest.mark.parametrize(("text", "status"), [(PRINTED, 0), (shown(PRINTED), 255)])
def test_a_device_that_did_not_come_to_the_end_is_an_error(text: bytes, status: int) -> None:
    with pytest.raises(PersonError):
        account(text, Tally(b"kkk"), status)
