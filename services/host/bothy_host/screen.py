"""What the program's terminal shows, told to a device that has not seen it.

The host feeds all output of a session to one :class:`ScreenState`: a ``session_screen.SessionScreen``, which has a screen in the
process of the terminal emulator (``emulator_link``), and for when that is late, dead or not installed the last output (``tail``).
In that process ``bounded.BoundedScreen`` limits what ``emulated.EmulatedScreen`` costs.
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

    async def repaint(self) -> bytes:
        """A reset and then what brings a terminal of this size to the same screen and modes; nothing in it asks for an answer.

        It shows what was fed before, so nothing may be fed meanwhile. Nothing at all while nothing was printed.
        """

    def close(self) -> None:
        """The session has ended."""


MakeScreen = Callable[[int], ScreenState]
"""Makes the screen of a new session; the argument is the most bytes of a repaint."""
