"""What the program's terminal shows, told to a device that has not seen it.

The host feeds all output of a session to one :class:`ScreenState`. ``emulated.EmulatedScreen`` is a terminal emulator and
knows the screen itself, at a cost that ``bounded.BoundedScreen`` limits; ``tail.TailScreen`` plays the last output again and is there when the emulator is not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class ScreenState(Protocol):
    """The screen of one session."""

    def feed(self, output: bytes) -> None:
        """The program printed; the pieces of the output come in order and may be cut anywhere."""

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now."""

    @property
    def behind(self) -> bool:
        """Whether it should get no more output now; to be asked again soon, because nobody tells when that ends."""

    def repaint(self) -> bytes:
        """A reset and then what brings a terminal of this size to the same screen and modes; nothing in it asks for an answer.

        Nothing at all while nothing was printed.
        """


MakeScreen = Callable[[int], ScreenState]
"""Makes the screen of a new session; the argument is the most bytes of a repaint."""
