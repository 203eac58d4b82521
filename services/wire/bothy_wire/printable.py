"""Words of somebody else, made fit for a terminal or a log."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""``text`` on one line and without control or invisible characters, so that it cannot steer a terminal.

    >>> printable("lab\x1b]0;title\x07-1")
    'lab ]0;title -1'
    """
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
