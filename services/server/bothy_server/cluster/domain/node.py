"""A process of the cluster, and what it says of itself (``docs/spec/cluster.md``, N5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from bothy_wire.ids import NodeId

Role = Literal["api", "worker", "all"]

WRITES_HEARD = 3
"""A node that missed as many writes of its status says nothing about now. No key: it only bounds what is shown and warned of."""


class NodeState(StrEnum):
    """A node that was killed stays as it was; its heartbeat tells."""

    ACTIVE = "active"
    DRAINING = "draining"
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True)
class Node:
    """Who a process is. ``origin`` is its public listener; a worker has none."""

    id: NodeId
    role: Role
    origin: str | None
    version: str


@dataclass(frozen=True, slots=True)
class Figures:
    """What a node counts. ``unpaired`` and bytes since its start; ages in seconds, None where there is nothing to measure."""

    sides: int = 0
    pairs: int = 0
    controls: int = 0
    pending: int = 0
    unpaired_client: int = 0
    unpaired_host: int = 0
    echo_age_s: float | None = None
    tail_lag_s: float | None = None
    forwarded_bytes: int = 0
    key_ids: tuple[str, ...] = ()
    signs_with: str | None = None


@dataclass(frozen=True, slots=True)
class ListedNode:
    """A node's rows. ``silent_s``: seconds since its last heartbeat."""

    node: Node
    state: NodeState
    started_at: datetime
    silent_s: float
    figures: Figures

    def heard(self, interval: float) -> bool:
        """Whether its figures are of now; ``interval`` in seconds is that of its writes."""
        return self.state is not NodeState.LEAVING and self.silent_s <= WRITES_HEARD * interval


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """The signing keys of a node, as it last wrote them."""

    node_id: NodeId
    key_ids: tuple[str, ...]
    signs_with: str
