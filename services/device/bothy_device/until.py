"""What a person means by an end: a date, an instant, or a time from now. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from bothy_device.failure import Failure
from bothy_wire.printable import printable

_DURATION = re.compile(r"(\d{1,6}) ?(m|min|h|d|w)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_UNITS = {
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def instant(text: str, now: datetime) -> datetime:
    """When ``text`` is over. ``now`` has an offset; what has none is in this machine's own time.

    A day counts to its end. Raises :class:`Failure` for what cannot be read and for what has passed.
    """
    try:
        end = _read(text.strip(), now)
    except (ValueError, OverflowError) as error:
        examples = "8h, 7d, 2026-12-31 or 2026-12-31T18:00"
        raise Failure(f"{printable(text)!r} is no end that can be read; write it like {examples}") from error
    if end <= now:
        raise Failure(f"{printable(text)!r} has passed")
    return end


def _read(text: str, now: datetime) -> datetime:
    if duration := _DURATION.fullmatch(text):
        return now + int(duration[1]) * _UNITS[duration[2]]
    if _DAY.fullmatch(text):
        return (datetime.fromisoformat(text) + timedelta(days=1)).astimezone()
    read = datetime.fromisoformat(text)
    return read if read.tzinfo is not None else read.astimezone()


def shown(end: str | None) -> str:
    """An end as the relay tells it, in this machine's own time, behind "for" or "as"."""
    if end is None:
        return "until somebody takes it away"
    return f"until {datetime.fromisoformat(end).astimezone():%Y-%m-%d %H:%M %Z}"
