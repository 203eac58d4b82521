"""Which keys are kept when there is not room for all of them. Pure.

What was read at once is kept whole or not at all, so that no key's sequence is cut. Of a bracketed paste that does not fit the
rest is dropped too, also when there is room again, and the paste ends for the remote side where it was cut: a program that waited
for its end would take every later key for text, and text behind a lost beginning would run as commands.
"""

from __future__ import annotations

PASTE_ENDS = b"\x1b[201~"


class Keeping:
    """Fed with all keys in their order."""

    def __init__(self) -> None:
        self._inside = False
        """The last key that was kept lies within a paste."""
        self._skipping = False
        """The paste that is under way was cut."""

    def admit(self, keys: bytes, *, pasting: bool, room: int | None) -> tuple[bytes, bool]:
        """What to send, now or later, and whether anything was dropped.

        ``pasting``: a paste is under way behind ``keys``. ``room`` in bytes, ``None`` for any amount.
        """
        if self._skipping:
            if pasting:
                return b"", True
            self._skipping = False
            keys = keys.partition(PASTE_ENDS)[2]
        if room is None or len(keys) <= room:
            self._inside = pasting
            return keys, False
        inside, self._inside, self._skipping = self._inside, False, pasting
        return PASTE_ENDS if inside else b"", True
