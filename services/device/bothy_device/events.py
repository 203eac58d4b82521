"""What happens to a session, and what it asks for: the events and effects of ``session.py``."""

from __future__ import annotations

from dataclasses import dataclass

from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import Frame

# ---- what happened ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Received:
    """A text frame or a binary message of the relay."""

    item: Frame | bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """The stream connection is gone."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Typed:
    """Bytes from the keyboard or the pipe in its place."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    """The terminal's size; the first one is given at the start."""

    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Written:
    """The terminal took that many of the bytes of :class:`Show`."""

    count: int


@dataclass(frozen=True, slots=True)
class Quit:
    """This program must go: a signal, or the terminal or the pipe behind it is gone."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    """The deadline has come."""


Event = Received | Closed | Typed | Resized | Written | Quit | Tick


# ---- what to do ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """The terminal is reached: from now on keys belong to the remote side."""


@dataclass(frozen=True, slots=True)
class Show:
    """Remote output for the terminal, answered by :class:`Written`."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Discard:
    """Forget the remote output that the terminal has not taken; answered by :class:`Written` as if it had."""


@dataclass(frozen=True, slots=True)
class Say:
    """Lines for the person."""

    text: str


@dataclass(frozen=True, slots=True)
class Status:
    """The status line; ``None`` takes it away."""

    text: str | None


@dataclass(frozen=True, slots=True)
class Bell:
    """Keys were dropped."""


@dataclass(frozen=True, slots=True)
class Read:
    """Read the keyboard, or leave the rest where it is."""

    on: bool


@dataclass(frozen=True, slots=True)
class Suspend:
    """Stop this program, as ^Z would."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The end. ``close`` is the code for the relay; ``message`` is for the person; ``reason`` the close_reason of 4100."""

    status: int
    message: str | None = None
    close: int = CloseCode.NORMAL
    reason: str | None = None


Effect = Begin | Show | Discard | Say | Status | Bell | Read | Suspend | Leave
