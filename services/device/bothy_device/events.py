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
class Accepted:
    """The relay accepted the stream connection that was dialled."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The stream connection, or the attempt to make one, is over."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Unreached:
    """Dialling or attaching found no relay; ``local``: because this machine has no network."""

    local: bool
    text: str


@dataclass(frozen=True, slots=True)
class Attached:
    """There is a new stream token, which lives until then."""

    token_until: float


@dataclass(frozen=True, slots=True)
class Refused:
    """The relay refused to attach: the problem code, words for the person, and the seconds that it asks us to wait."""

    code: str
    text: str
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class Woke:
    """This machine slept."""


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


Event = Accepted | Received | Closed | Unreached | Attached | Refused | Woke | Typed | Resized | Written | Quit | Tick


# ---- what to do ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dial:
    """Drop what there is of a connection and dial with the stream token; answered by :class:`Accepted` and the like."""


@dataclass(frozen=True, slots=True)
class Attach:
    """Drop what there is of a connection and ask for a new stream token.

    With ``take`` also when another device holds the session. Answered by :class:`Attached`, :class:`Refused` or
    :class:`Unreached`.
    """

    take: bool


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close the connection with this code and hear no more of it."""

    code: int


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


Effect = Dial | Attach | HangUp | Begin | Show | Discard | Say | Status | Bell | Read | Suspend | Leave
