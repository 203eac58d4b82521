"""A session: its states, how it may end, and who may move it from one state to the next (``docs/spec/rendezvous.md``).

The row in the database is the truth. Every move is a compare-and-swap on the states that :func:`sources` names; the loser
writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from bothy_wire.frames import CloseReason, OpenFailure


class SessionState(StrEnum):
    """Where a session stands."""

    OPENING = "opening"
    ACTIVE = "active"
    DETACHED = "detached"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Transition:
    """One allowed move, and who makes it."""

    source: SessionState
    target: SessionState
    writer: str


TRANSITIONS = (
    Transition(SessionState.OPENING, SessionState.ACTIVE, "the node that stores `started`, or a report"),
    Transition(SessionState.ACTIVE, SessionState.DETACHED, "the node whose device side left, or a report"),
    Transition(SessionState.DETACHED, SessionState.ACTIVE, "the node that pairs"),
    Transition(SessionState.OPENING, SessionState.CLOSED, "as the close reason says"),
    Transition(SessionState.ACTIVE, SessionState.CLOSED, "as the close reason says"),
    Transition(SessionState.DETACHED, SessionState.CLOSED, "as the close reason says"),
)


def sources(target: SessionState) -> frozenset[SessionState]:
    """The states from which a session may move to ``target``: the set of a compare-and-swap."""
    return frozenset(move.source for move in TRANSITIONS if move.target is target)


@dataclass(frozen=True, slots=True)
class Row:
    """What a node last read of a session's row. ``paired`` says that ``paired_at`` is set.

    ``paired_seq`` counts the pairings of the session on all nodes; each pairing is known by its own value.
    """

    state: SessionState
    attach_seq: int
    paired: bool = False
    paired_seq: int = 0
    close_reason: CloseReason | None = None
    close_detail: OpenFailure | None = None
    local_confirm: bool = False

    @property
    def never_met(self) -> bool:
        """Still waiting for its first pairing: the only row that a missed meeting may end (L3)."""
        return self.state is SessionState.OPENING and not self.paired

    def outlived(self, pairing: int) -> bool:
        """Whether a ``detached`` for the pairing with this ``paired_seq`` would change nothing any more (E4b)."""
        done = self.state in {SessionState.DETACHED, SessionState.CLOSED}
        return self.paired_seq > pairing or (self.paired_seq == pairing and done)

    @property
    def end(self) -> str:
        """The words of close code 4100: the close reason, of a failed opening also the detail."""
        if self.close_reason == "open_failed" and self.close_detail:
            return f"{self.close_reason}: {self.close_detail}"
        return self.close_reason or ""


_ORDER = list(SessionState)


def newest(known: Row | None, heard: Row) -> Row:
    """Join what is known with what was heard; reads and the tail bring rows in any order (S5).

    A pairing raises ``paired_seq``, and between two pairings a session only moves forward, so that the two values order
    all versions of a row.
    """
    if known is None:
        return heard
    later = heard if _age(heard) >= _age(known) else known
    return replace(later, attach_seq=max(known.attach_seq, heard.attach_seq))


def _age(row: Row) -> tuple[bool, int, int]:
    return row.state is SessionState.CLOSED, row.paired_seq, _ORDER.index(row.state)
