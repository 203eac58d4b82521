"""What output left set in a terminal: modes, colours, character sets, scroll region, title. For who sees only its end.

The newest sequence of each kind is kept as it was, so to set everything again is to print them.
"""

from __future__ import annotations

import re

_EVENT = re.compile(
    rb"\x1b(?:"
    rb"(?P<reset>c)"
    rb"|(?P<soft>\[!p)"
    rb"|\[(?P<mode>\??\d{1,5}(?:;\d{1,5}){0,15})[hl]"
    rb"|(?P<region>\[[\d;]{0,16}r)"
    rb"|(?P<shape>\[\d{0,3} q)"
    rb"|(?P<keypad>[=>])"
    rb"|(?P<slot>[()*+])[0-9A-Za-z]"
    rb"|(?P<title>\][02];[^\x00-\x1f]{0,256}(?:\x07|\x1b\\))"
    rb")"
)
"""With one beginning, because only that is looked for fast. What is longer than any that programs use is not kept."""
_COLOUR = re.compile(rb"\x1b\[(?P<parameters>[\d;:]{0,64})m")
"""By far the most frequent, so only those behind the last that begins anew are looked at."""
_ANEW = (b"\x1b[m", b"\x1b[0m", b"\x1bc", b"\x1b[!p")
_SHIFTS = (b"\x0e", b"\x0f")
_PASSING = {b"?3", b"?1048", b"?2026"}
"""Modes that do something when they are set, or hold for a moment only."""
_SCREENS = (b"?47", b"?1047", b"?1049")
_NO_COLOURS = re.compile(rb"0*(?:;|$)")
_MOST_KINDS = 64
_MOST_COLOURS = 256


class Modes:
    """Follows output; :meth:`again` sets what it left. Bounded, whatever a program prints."""

    def __init__(self) -> None:
        self._kept: dict[bytes, bytes] = {}

    def copy(self) -> Modes:
        """The same, to go on from here in two ways."""
        copied = Modes()
        copied._kept = dict(self._kept)
        return copied

    def follow(self, output: bytes) -> None:
        """Output without a sequence cut in two."""
        for event in _EVENT.finditer(output):
            kind, sequence = event.lastgroup, event.group()
            match kind:
                case "reset":
                    self._kept.clear()
                case "mode":
                    self._set(event.group("mode"), sequence[-1:])
                case "soft":  # what it resets differs from terminal to terminal, colours in all of them
                    self._kept.pop(b"sgr", None)
                    self._keep(b"soft", sequence)
                case "slot":
                    self._keep(event.group("slot"), sequence)
                case str():
                    self._keep(kind.encode(), sequence)
        self._colours(output)
        shift = max(_SHIFTS, key=output.rfind)
        if output.rfind(shift) > output.rfind(b"\x1bc"):
            self._keep(b"shift", shift)

    def again(self) -> bytes:
        """What sets it all in a terminal that was reset; the alternate screen first, because to enter it erases."""
        screens = [self._kept[mode] for mode in _SCREENS if mode in self._kept]
        return b"".join([*screens, *(sequence for kind, sequence in self._kept.items() if kind not in _SCREENS)])

    def _set(self, modes: bytes, end: bytes) -> None:
        private, numbers = modes[:1] == b"?", modes.removeprefix(b"?").split(b";")
        for number in numbers:
            mode = (b"?" if private else b"") + number.lstrip(b"0")
            if mode not in _PASSING:
                self._keep(mode, b"\x1b[%s%s" % (mode, end))

    def _colours(self, output: bytes) -> None:
        begin = max(output.rfind(each) for each in _ANEW)
        kept = b"" if begin >= 0 else self._kept.get(b"sgr", b"")
        for colour in _COLOUR.finditer(output, max(begin, 0)):
            anew = _NO_COLOURS.match(colour["parameters"]) is not None or len(kept) >= _MOST_COLOURS
            kept = colour.group() if anew else kept + colour.group()
        if kept:
            self._keep(b"sgr", kept)

    def _keep(self, kind: bytes, sequence: bytes) -> None:
        self._kept.pop(kind, None)
        self._kept[kind] = sequence
        if len(self._kept) > _MOST_KINDS:
            del self._kept[next(iter(self._kept))]
