r"""Output that is played again: without what a terminal would answer, and from a place where a terminal may begin.

Played back as it was, output could make the new terminal *answer*: a device attributes query of an hour ago would type its
reply into today's shell. So everything that asks a terminal to send something, and everything that writes or reads its
clipboard, is taken out. C0 controls inside a sequence do not hide it, because terminals obey the sequence all the same.
"""

from __future__ import annotations

import re

RESET = b"\x1bc"
_CANCEL = b"\x18"
"""Stands where something was taken out: shows nothing, and what stood around it cannot grow together to a new sequence."""

_BODY = rb"[^\x07\x18\x1a\x1b]*"
_SEQUENCE = re.compile(
    rb"\x1b\[(?P<csi>[\x00-\x17\x19\x1c-\x3f\x7f]*[\x40-\x7e])"
    rb"|\x1b\](?P<osc>" + _BODY + rb")(?:\x07|\x1b\\)"
    rb"|\x1b[PX^_]" + _BODY + rb"\x1b\\"
    rb"|\x1bZ|\x05"
)
"""CSI, OSC, the other string sequences, DECID and ENQ (a terminal's answerback)."""

_ESCAPE = re.compile(rb"\x1b(?:\[[\x00-\x3f]*[\x40-\x7e]|[\]PX^_]" + _BODY + rb"(?:\x07|\x1b\\)|[ -/]*[0-~])")

_CSI_QUERIES = re.compile(
    rb"[>=?]?[\d;]*c"  # device attributes
    rb"|\??[\d;]*n"  # device status, cursor position
    rb"|\??[\d;]*\$p"  # DECRQM
    rb"|>[\d;]*q"  # XTVERSION
    rb"|[\d;]*x"  # DECREQTPARM
    rb"|[\d;]*\$[uw]|&u|\"v"  # DECRQTSR, DECRQPSR, DECRQUPSS, DECRQDE
    rb"|\?u"  # keyboard protocol
    rb"|\?[\d;]*m"  # XTQMODKEYS
    rb"|[\d;]*\*y"  # DECRQCRA
    rb"|\?[\d;]*S"  # graphics limits
    rb"|[\d;]*#\|"  # XTREPORTSGR
    rb"|[\d;]*'\|"  # locator
    rb"|\??[\d;]*i"  # media copy
    rb"|0*(?:1[1-9]|2[01])(?:;[\d;]*)?t"  # window reports, among them the title
    rb"|\?(?:[\d;]*;)?2048(?:;[\d;]*)?h"  # size reports, the first at once
)
_OSC_ALWAYS = re.compile(rb"0*(?:52|60|61)(?:;.*)?|0*1337;.*[Rr]eport.*", re.DOTALL)
"""Clipboard, terminal permissions and the reports of one terminal; any other OSC asks with a ``?`` in place of a value."""
_VALUE = re.compile(rb"[;=]")
_C1 = re.compile(rb"\xc2[\x80-\x9f]")
"""The same controls as one character; many terminals obey them. Programs hardly use them, so they go before all else."""
_C0 = re.compile(rb"[\x00-\x1f\x7f]")


def strip_queries(output: bytes) -> bytes:
    """The output without anything that a terminal would answer."""
    return _SEQUENCE.sub(_keep, strip_controls(output))


def strip_controls(output: bytes) -> bytes:
    """The output without controls of one character, also for a sequence whose end is still to come."""
    return _C1.sub(_CANCEL, output)


def _keep(match: re.Match[bytes]) -> bytes:
    csi, osc = (None if part is None else _C0.sub(b"", part) for part in match.group("csi", "osc"))
    if csi is not None and _CSI_QUERIES.fullmatch(csi) is None:
        return match.group()
    if osc is not None and _OSC_ALWAYS.fullmatch(osc) is None and b"?" not in _VALUE.split(osc):
        return match.group()
    # Also the other strings go: status and capability requests, wrapped sequences and pictures that report back travel in
    # them, and a screen does without.
    return _CANCEL


def border(output: bytes | bytearray, at: int) -> int:
    """The first place at or behind ``at`` where a terminal may begin: outside of every sequence and character."""
    begin = output.rfind(b"\x1b", 0, at)
    whole = _ESCAPE.match(output, begin) if begin >= 0 else None
    if whole is not None and whole.end() > at:
        return whole.end()
    while at < len(output) and 0x80 <= output[at] < 0xC0:
        at += 1
    return at
