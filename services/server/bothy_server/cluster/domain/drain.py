"""The drain: in which order a node leaves (``docs/spec/cluster.md``, N2).

A pure rule. The shell calls :func:`begin` once, then :func:`step` with what it sees at each :func:`deadline`, and does the
acts in their order. Instants are seconds of the node's steady clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias, assert_never


class Step(StrEnum):
    """Where a drain is."""

    NOTICE = "notice"
    CONTROLS = "controls"
    SIDES = "sides"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Limits:
    """The keys ``server.drain_*``: seconds, and ``batch`` pairs."""

    notice: float
    spread: float
    control_wait: float
    batch: int
    batch_gap: float
    timeout: float


@dataclass(frozen=True, slots=True)
class Left:
    """What is still on the node. ``others``: connections that are none of ours yet, or carry a request."""

    controls: int
    sides: int
    others: int = 0

    @property
    def nothing(self) -> bool:
        """Whether the node may go."""
        return not (self.controls or self.sides or self.others)


# ---- what the node does -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TurnAway:
    """Say everywhere that this node leaves, and act for no session any more."""


@dataclass(frozen=True, slots=True)
class CloseListener:
    """Refuse new connections; open ones stay."""


@dataclass(frozen=True, slots=True)
class CloseControls:
    """Close so many control connections more."""

    count: int


@dataclass(frozen=True, slots=True)
class CloseSides:
    """Close every side that is alone, and both sides of so many pairs more."""

    pairs: int


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process."""


Act: TypeAlias = TurnAway | CloseListener | CloseControls | CloseSides | Exit


# ---- where it stands ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Notice:
    """The edge may learn of it; nothing else happens."""


@dataclass(frozen=True, slots=True)
class Controls:
    """``told`` of the ``total`` control connections that were here at ``since`` are closed."""

    since: float
    total: int
    told: int = 0


@dataclass(frozen=True, slots=True)
class Sides:
    """A batch at each look, until nothing is left."""


@dataclass(frozen=True, slots=True)
class Over:
    """The process may end."""


@dataclass(frozen=True, slots=True)
class State:
    """``looked_at``: of the last step."""

    began_at: float
    looked_at: float
    phase: Notice | Controls | Sides | Over = Notice()

    @property
    def step(self) -> Step:
        """Its name."""
        match self.phase:
            case Notice():
                return Step.NOTICE
            case Controls():
                return Step.CONTROLS
            case Sides():
                return Step.SIDES
            case Over():
                return Step.OVER
            case _:
                assert_never(self.phase)


def begin(now: float) -> tuple[State, list[Act]]:
    """The node is asked to leave at instant ``now``."""
    return State(now, now), [TurnAway()]


def step(state: State, left: Left, now: float, limits: Limits) -> tuple[State, list[Act]]:
    """What is due at ``now``, with so much left."""
    if now >= state.began_at + limits.timeout:
        return replace(state, looked_at=now, phase=Over()), [Exit()]
    acts: list[Act] = []
    state = replace(state, looked_at=now)
    if isinstance(state.phase, Notice) and now >= state.began_at + limits.notice:
        state = replace(state, phase=Controls(now, left.controls))
        acts.append(CloseListener())
    if isinstance(state.phase, Controls):
        controls = state.phase
        due = _due(controls, now, limits)
        if due > controls.told:
            acts.append(CloseControls(due - controls.told))
            state = replace(state, phase=replace(controls, told=due))
        elif left.controls == 0 or now >= controls.since + limits.spread + limits.control_wait:
            state = replace(state, phase=Sides())
    if isinstance(state.phase, Sides):
        if left.controls:  # one that came while the listener closed, or whose host does not answer
            acts.append(CloseControls(left.controls))
        if left.sides:
            acts.append(CloseSides(limits.batch))
        if left.nothing:
            state = replace(state, phase=Over())
            acts.append(Exit())
    return state, acts


def deadline(state: State, limits: Limits) -> float | None:
    """The instant of the next step; ``None`` when it is over. What is left is looked at every ``batch_gap``."""
    look = state.looked_at + limits.batch_gap
    match state.phase:
        case Notice():
            at = state.began_at + limits.notice
        case Controls(since, total, told) if told < total:
            at = min(look, since + told * limits.spread / total)
        case Controls() | Sides():
            at = look
        case Over():
            return None
        case _:
            assert_never(state.phase)
    return min(at, state.began_at + limits.timeout)


def _due(phase: Controls, now: float, limits: Limits) -> int:
    """How many are to be closed by now: evenly over the spread, the first at once."""
    due = phase.told
    while due < phase.total and phase.since + due * limits.spread / phase.total <= now:
        due += 1
    return due
