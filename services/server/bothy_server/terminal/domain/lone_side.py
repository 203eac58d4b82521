"""The lone side: its counterpart is not on this node (rules L1 to L5 of ``docs/spec/cluster.md``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bothy_server.terminal.domain.session import Row, SessionState

SideName = Literal["client", "host"]
"""The value of the attribute ``bothy.terminal.side``."""

SIDE_NAME: dict[Literal["device", "host"], SideName] = {"device": "client", "host": "host"}


@dataclass(frozen=True, slots=True)
class LoneOutcome:
    """What happens when a side that was never paired has waited long enough: it closes 4102 and is counted.

    ``ends_row``: the session then ends ``open_failed`` with ``open_timeout`` (L3).
    """

    counted: SideName
    ends_row: bool


def lone_side_outcome(side: SideName, row: Row) -> LoneOutcome | None:
    """The outcome for a side that was never paired; ``None`` when it has no deadline and waits (L4)."""
    if side == "host" and row.state is not SessionState.OPENING:
        return None
    return LoneOutcome(counted=side, ends_row=row.never_met)


def lone_side_deadline(lone_since: float, open_timeout: float) -> float:
    """The instant, inclusive, at which a lone side has waited long enough. All three are seconds of one clock."""
    return lone_since + open_timeout
