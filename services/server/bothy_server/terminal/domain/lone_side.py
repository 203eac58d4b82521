"""The lone side: its counterpart is not on this node (rules L1 to L5 of ``docs/spec/cluster.md``)."""

from __future__ import annotations

from typing import Literal

from bothy_server.terminal.domain.session import Row, SessionState

SideName = Literal["client", "host"]
"""The value of the attribute ``bothy.terminal.side``."""

SIDE_NAME: dict[Literal["device", "host"], SideName] = {"device": "client", "host": "host"}


def is_given_up(side: SideName, row: Row) -> bool:
    """Whether a side that was never paired closes 4102 at its deadline (L1, L2); else it has none and waits (L4)."""
    return side == "client" or row.state is SessionState.OPENING


def lone_side_deadline(lone_since: float, open_timeout: float) -> float:
    """The instant, inclusive, at which a lone side has waited long enough. All three are seconds of one clock."""
    return lone_since + open_timeout
