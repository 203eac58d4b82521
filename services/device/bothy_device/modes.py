"""What the remote program switched on at the person's terminal, and how to switch it off again.

Pure. Fed with the bytes that reached the terminal. It also knows whether the output stops inside an escape sequence or a
character, where words of our own would spoil both.
"""

from __future__ import annotations

import re

_PRIVATE_MODE = re.compile(rb"\x1b\[\?([0-9;]+)([hl])")
_HARD_RESET = b"\x1bc"

# DEC private modes that a shell would not survive, each with its state in a fresh terminal.
_FRESH = {
    1: False,  # application cursor keys
    5: False,  # reverse video
    6: False,  # origin mode
    7: True,  # auto wrap
    9: False,  # mouse: X10
    25: True,  # cursor visible
    47: False,  # alternate screen
    1000: False,  # mouse: clicks
    1002: False,  # mouse: drags
    1003: False,  # mouse: all motion
    1004: False,  # focus reports
    1005: False,  # mouse: UTF-8 coordinates
    1006: False,  # mouse: SGR coordinates
    1015: False,  # mouse: urxvt coordinates
    1047: False,  # alternate screen
    1049: False,  # alternate screen, cursor kept
    2004: False,  # bracketed paste
}
_SCREENS = (47, 1047, 1049)

# An escape sequence or a character that has begun and not ended, at the end of the output.
_UNFINISHED = re.compile(
    rb"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]*\x1b?|[ -/]*)"
    rb"|[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z"
)
_TAIL = 256
"""A longer string sequence (a title, a clipboard) is not waited for."""


class Modes:
    """The modes that differ from a fresh terminal's."""

    def __init__(self) -> None:
        self._changed: dict[int, bool] = {}
        self._tail = b""

    def feed(self, data: bytes) -> bool:
        """Bytes that were written to the terminal; whether they reset it, and so cleared it."""
        text = self._tail + data
        reset = text.rfind(_HARD_RESET)
        if reset >= 0:
            self._changed.clear()
            text = text[reset + len(_HARD_RESET) :]
        for match in _PRIVATE_MODE.finditer(text):
            for number in match[1].split(b";"):
                self._set(number, on=match[2] == b"h")
        unfinished = _UNFINISHED.search(text, max(0, len(text) - _TAIL))
        self._tail = unfinished[0] if unfinished else b""
        return reset >= 0

    def _set(self, number: bytes, *, on: bool) -> None:
        mode = int(number) if 0 < len(number) <= 4 else 0
        if mode in _FRESH:
            self._changed.pop(mode, None)
            if _FRESH[mode] is not on:
                self._changed[mode] = on

    @property
    def between_sequences(self) -> bool:
        """Whether words of our own may be written now."""
        return not self._tail

    @property
    def tail(self) -> bytes:
        """The sequence or character that has begun and not ended."""
        return self._tail

    @property
    def full_screen(self) -> bool:
        """Whether a program holds the alternate screen, and so draws all of it when the size changes."""
        return any(self._changed.get(screen) for screen in _SCREENS)

    def restore(self) -> bytes:
        """What brings the terminal back: the screen last, so that everything else ends on the screen it began on."""
        if not self._changed and not self._tail:
            return b""
        order = sorted(self._changed, key=lambda mode: mode in _SCREENS)
        cancel = b"\x18" if self._tail else b""  # CAN ends an unfinished sequence
        return (
            cancel
            + b"".join(b"\x1b[?%d%c" % (mode, b"h" if _FRESH[mode] else b"l") for mode in order)
            + b"\x1b[0m\x1b>"
        )
