"""Which key signs, and when one may go."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bothy_server.identity.adapters.keystore.rotation import (
    CannotRetireError,
    KeyState,
    SigningKey,
    check_retirement,
    signing_key,
    state_of,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LEAD = timedelta(hours=1)
SECRET = Ed25519PrivateKey.generate()


def key(kid, *, signs_in=-48.0, retired_in=None):
    """Times in hours from now; made one lead before it signs."""
    signs_from = NOW + timedelta(hours=signs_in)
    retired_at = None if retired_in is None else NOW + timedelta(hours=retired_in)
    return SigningKey(kid, SECRET, signs_from - LEAD, signs_from, retired_at)


OLD, NEW, NEXT = key("old"), key("new", signs_in=-2), key("next", signs_in=0.5)


# ---- which one signs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "lacking", "published_s", "signs"),
    [
        ((OLD, NEW), (), {"old": 9000, "new": 3600}, "new"),
        ((NEW, OLD), (), {"old": 9000, "new": 3600}, "new"),
        ((OLD, NEW), (), {"old": 9000, "new": 3599}, "old"),
        ((OLD, NEW), ("new",), {"old": 9000, "new": 3600}, "old"),
        ((OLD, NEXT), (), {"old": 9000, "next": 3600}, "old"),
        # none is as it should be: the nearest to it
        ((OLD, NEW), (), {"old": 5, "new": 5}, "new"),
        ((OLD, NEW), (), {"old": 6, "new": 5}, "old"),
        ((OLD, NEW), ("old", "new"), {"old": 9000, "new": 3600}, "new"),
        ((OLD, NEW), ("old", "new"), {"old": 9000, "new": 3599}, "old"),
        ((OLD, NEW), ("old",), {"old": 9000, "new": 5}, "new"),
        ((key("old", retired_in=1), NEW), ("new",), {"old": 9000, "new": 0}, "new"),
        ((key("old", retired_in=-1), NEXT), (), {"old": 9000, "next": 0}, "next"),
        ((key("old", retired_in=1),), (), {"old": 9000}, None),
    ],
)
def test_the_newest_that_is_due_published_long_enough_and_held_everywhere_signs(keys, lacking, published_s, signs):
    found = signing_key(keys, NOW, lacking=lacking, published_s=published_s, lead=3600)
    assert (found and found.kid) == signs


# ---- what each is for -----------------------------------------------------------------------------------------------


def test_every_key_has_one_state():
    leaving, gone = key("leaving", signs_in=-60, retired_in=1), key("gone", signs_in=-70, retired_in=0)
    keys = OLD, NEW, NEXT, leaving, gone
    assert [state_of(each, keys, NOW) for each in keys] == [
        KeyState.VERIFIES,
        KeyState.SIGNS,
        KeyState.NEXT,
        KeyState.VERIFIES,
        KeyState.RETIRED,
    ]


# ---- when one may go ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kid", "keys", "at_once", "why"),
    [
        ("other", (OLD, NEW), False, "there is no key other"),
        ("new", (OLD, NEW), False, "it is the key that signs"),
        ("old", (OLD,), False, "no other key may sign"),
        ("old", (OLD,), True, "no other key may sign"),
        ("old", (OLD, NEXT), False, "no other key may sign"),
        ("old", (OLD, NEXT), True, "no other key may sign; make one with .*--now"),
        ("old", (OLD, key("hasty", signs_in=0)), False, None),
        ("old", (OLD, NEW), False, None),
        ("old", (OLD, NEW), True, None),
        ("new", (OLD, NEW), True, None),
        ("next", (OLD, NEXT), False, None),
        ("old", (key("old", retired_in=1), NEW), False, "retired already, from 2026-01-02T04:04:05"),
        ("old", (key("old", retired_in=1), NEW), True, None),
        ("old", (key("old", retired_in=-1), NEW), True, "retired already"),
    ],
)
def test_a_key_that_is_needed_stays(kid, keys, at_once, why):
    if why is None:
        check_retirement(kid, keys, NOW, LEAD, at_once=at_once)
    else:
        with pytest.raises(CannotRetireError, match=why):
            check_retirement(kid, keys, NOW, LEAD, at_once=at_once)


def test_a_key_waits_for_its_heir_to_be_published_unless_it_was_stolen():
    hasty = SigningKey("hasty", SECRET, NOW, NOW)
    with pytest.raises(CannotRetireError, match=r"hasty has not been published .* try again at 2026-01-02T04:04:05"):
        check_retirement("old", (OLD, hasty), NOW, LEAD, at_once=False)
    check_retirement("old", (OLD, hasty), NOW, LEAD, at_once=True)
