"""What a rendezvous is told. Each class is one fact that the shell saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bothy_server.terminal.domain.rendezvous.state import Kind
from bothy_server.terminal.domain.session import Row

Outcome = Literal["granted", "stale", "superseded", "denied", "closed", "unavailable"]
"""What a check found.

- ``granted``: the row carries the pairing; ``row``, ``paired_seq`` are those after the statement, ``token`` is minted.
- ``stale``: the database is away and the earlier decision still holds (N1a); ``token`` is minted, ``row`` is the last known.
- ``superseded``: the row's ``attach_seq`` is not the device side's.
- ``denied``: the person has no right any more.
- ``closed``: the row is closed.
- ``unavailable``: the database did not answer and N1a does not allow the pair; no row.
"""


@dataclass(frozen=True, slots=True)
class Expected:
    """``session_open`` came and its row was read (E1)."""

    row: Row


@dataclass(frozen=True, slots=True)
class PairedElsewhere:
    """``session_paired`` came: another node paired a session whose host asks a person on the spot (E3)."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A side identified itself. ``conn`` is its place in the order of registration on this node, never used twice.

    ``seq`` is the ``attach_seq`` of a device's stream token; a host has none.
    """

    conn: int
    kind: Kind
    seq: int = 0


@dataclass(frozen=True, slots=True)
class RowRead:
    """Answer to :class:`ReadRow`. No row: unknown, or foreign to this side. ``failed``: the database did not answer."""

    conn: int
    row: Row | None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Readied:
    """``side.ready`` came."""

    conn: int


@dataclass(frozen=True, slots=True)
class Gone:
    """The connection ended, for whatever cause; also one that the rendezvous closed itself."""

    conn: int


@dataclass(frozen=True, slots=True)
class Stalled:
    """The peer of this connection took nothing for ``terminal.stall_timeout``."""

    conn: int


@dataclass(frozen=True, slots=True)
class Checked:
    """Answer to :class:`Check`; see :data:`Outcome`."""

    pairing: int
    outcome: Outcome
    row: Row | None = None
    paired_seq: int = 0
    token: str = ""


@dataclass(frozen=True, slots=True)
class RowChanged:
    """The tail of the event log, or a gap, brought the row."""

    row: Row


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """A :class:`WriteDetached` did not reach the database. A failed :class:`EndRow` is not told: the sweep ends the row."""

    paired_seq: int


@dataclass(frozen=True, slots=True)
class DatabaseLost:
    """The database stopped to answer this node."""


@dataclass(frozen=True, slots=True)
class DatabaseBack:
    """The database answers this node again."""


@dataclass(frozen=True, slots=True)
class Drain:
    """The node began to drain (N2). A rendezvous that begins later starts from ``State(draining=True)``."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The instant that :func:`deadline` named has come."""


Event: TypeAlias = (
    Expected
    | PairedElsewhere
    | Arrived
    | RowRead
    | Readied
    | Gone
    | Stalled
    | Checked
    | RowChanged
    | WriteFailed
    | DatabaseLost
    | DatabaseBack
    | Drain
    | Tick
)
