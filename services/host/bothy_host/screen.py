"""What the program's terminal shows, told to a device that has not seen it.

The host feeds all output of a session to one :class:`ScreenState`. ``emulated.EmulatedScreen`` is a terminal emulator and
knows the screen itself, at a cost that ``bounded.BoundedScreen`` limits; ``tail.TailScreen`` plays the last output again and is there when the emulator is not installed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from bothy_host.tail import TailScreen

_log = logging.getLogger(__name__)
_TRIAL_BYTES = 4096


class ScreenState(Protocol):
    """The screen of one session."""

    def feed(self, output: bytes) -> None:
        """The program printed; the pieces of the output come in order and may be cut anywhere."""

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now."""

    def repaint(self) -> bytes:
        """A reset and then what brings a terminal of this size to the same screen and modes; nothing in it asks for an answer.

        Nothing at all while nothing was printed.
        """


MakeScreen = Callable[[int], ScreenState]
"""Makes the screen of a new session; the argument is the most bytes of a repaint."""


def best() -> MakeScreen:
    """The emulator where it is installed (extra ``screen``), else the tail."""
    try:
        from bothy_host.bounded import BoundedScreen
    except (ImportError, OSError):  # not installed, or not for this machine
        _log.info("the extra 'screen' is not installed: who attaches anew is shown the last output again")
        return TailScreen
    # Each of its functions takes a tenth of a second the first time; better now than between somebody's keys.
    trial = BoundedScreen(_TRIAL_BYTES)
    trial.feed(b"\r\n" * 30 + b"\x1b]2;trial\x07\x1b]4;1;#000000\x07\x1b[?1049h\x1b[44m\x1b[2J")
    trial.repaint()
    return BoundedScreen
