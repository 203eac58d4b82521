"""What a node knows of one session that is meeting on it. Instants are seconds of the node's steady clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bothy_server.terminal.domain.session import Row

Kind = Literal["device", "host"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds; the keys of the same names under ``terminal``."""

    open_timeout: float
    start_timeout: float
    redial_after: float
    stall_timeout: float


@dataclass(frozen=True, slots=True)
class Side:
    """One connection. ``lone_since`` is its identify, after a pairing the end of the last one.

    ``asked_at``: ``side.unpaired`` was written then and is unanswered; a side without it is ready.
    ``paired_seq``: of its last pairing, before the first as read at its identify. It fences what is written for it (E4b).
    """

    conn: int
    kind: Kind
    seq: int
    lone_since: float
    asked_at: float | None = None
    paired_once: bool = False
    paired_seq: int = 0
    redials: int = 0
    detach_written: bool = False

    @property
    def ready(self) -> bool:
        """Accepted means ready; unpaired means not ready until the side says so."""
        return self.asked_at is None


@dataclass(frozen=True, slots=True)
class Expectation:
    """A signal said that sides may come. ``spared``: a pairing elsewhere was told after the grant."""

    granted_at: float
    attach_seq: int
    spared: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """No pair, no check."""


@dataclass(frozen=True, slots=True)
class Checking:
    """A check runs. ``void``: a side changed since; the answer is awaited and undone."""

    pairing: int
    void: bool = False


@dataclass(frozen=True, slots=True)
class Paired:
    """Bytes pass. ``record``: the row carries this pairing (``made``), must be told of it (``due``), is being told (``asked``)."""

    pairing: int
    record: Literal["made", "due", "asked"] = "made"


Phase: TypeAlias = Waiting | Checking | Paired


@dataclass(frozen=True, slots=True)
class State:
    """The rendezvous of one session on one node.

    ``reading``: registered sides whose row is still being read (E2a). ``start_by``: the program must run by then (H1).
    ``owed``: the ``paired_seq`` of a ``detached`` that could not be written. ``pairings`` numbers the checks.
    """

    row: Row | None = None
    expectation: Expectation | None = None
    phase: Phase = Waiting()
    device: Side | None = None
    host: Side | None = None
    reading: tuple[Side, ...] = ()
    start_by: float | None = None
    owed: int | None = None
    pairings: int = 0
    away: bool = False
    draining: bool = False

    @property
    def accepted(self) -> tuple[Side, ...]:
        """The sides whose row was read and found good."""
        return tuple(side for side in (self.device, self.host) if side is not None)


def is_idle(state: State) -> bool:
    """Whether nothing is left to wait for, so that the shell may forget this rendezvous."""
    return (
        not sides(state)
        and state.expectation is None
        and state.start_by is None
        and state.owed is None
        and isinstance(state.phase, Waiting)
    )


def sides(state: State) -> tuple[Side, ...]:
    """Every registered side, also one whose row is still being read."""
    return (*state.reading, *state.accepted)


def is_paired(state: State) -> bool:
    """Whether bytes pass."""
    return isinstance(state.phase, Paired)
