"""What a person means by an end."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from bothy_device.failure import Failure
from bothy_device.until import instant, shown

NOW = datetime(2026, 5, 6, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ahead"),
    [
        ("90m", timedelta(minutes=90)),
        ("90 min", timedelta(minutes=90)),
        ("8h", timedelta(hours=8)),
        (" 7d ", timedelta(days=7)),
        ("2w", timedelta(days=14)),
    ],
)
def test_a_time_from_now(text, ahead):
    assert instant(text, NOW) == NOW + ahead


def test_a_day_counts_to_its_end_in_this_machines_time():
    assert instant("2026-12-31", NOW) == datetime(2027, 1, 1).astimezone()


def test_an_instant_is_in_this_machines_time_unless_it_says_otherwise():
    for text in ("2026-12-31 18:00", "2026-12-31T18:00:00"):
        assert instant(text, NOW) == datetime(2026, 12, 31, 18).astimezone()
    assert instant("2026-12-31T18:00Z", NOW) == datetime(2026, 12, 31, 18, tzinfo=UTC)
    assert instant("2026-12-31T18:00+05:30", NOW) == datetime(
        2026, 12, 31, 18, tzinfo=timezone(timedelta(hours=5, minutes=30))
    )


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "8", "h", "-8h", "1.5h", "8h30m", "31.12.2026", "2026-13-01", "999999w"]
)
def test_what_cannot_be_read_says_how_to_write_it(text):
    with pytest.raises(Failure, match="is no end that can be read; write it like 8h, 7d, 2026-12-31"):
        instant(text, NOW)


@pytest.mark.parametrize("text", ["2026-05-05", "2026-05-06T12:00Z", "0h", "2026-05-06 11:59Z"])
def test_what_has_passed_is_no_end(text):
    with pytest.raises(Failure, match="has passed"):
        instant(text, NOW)


def test_an_end_is_shown_in_this_machines_time():
    assert shown(None) == "until somebody takes it away"
    local = datetime(2026, 12, 31, 18, tzinfo=UTC).astimezone()
    assert shown("2026-12-31T18:00:00Z") == f"until {local:%Y-%m-%d %H:%M %Z}"
