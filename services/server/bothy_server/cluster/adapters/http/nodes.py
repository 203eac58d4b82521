"""REST of nodes, for operators."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from bothy_server.cluster.app.node_registry import NodeDirectory, node_unknown
from bothy_server.cluster.domain.node import ListedNode, Role
from bothy_server.platform.operations import Call, operation
from bothy_wire.ids import NodeId, StepUpId


class NodeBody(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the relay, and what it last said of itself. Counts of what was so far are since ``started_at``."""

    node_id: UUID
    role: Role
    state: Literal["active", "draining", "leaving"]
    heard: bool
    """Whether its figures are of now. One that is silent was killed, or cannot reach the database."""
    silent_s: float
    """Since it last said something."""
    origin: str | None
    """Where its public listener is, as the machine itself names it; a worker has none."""
    version: str
    started_at: datetime
    controls: int
    """Hosts that are connected to it."""
    sides: int
    """Stream and data connections of sessions."""
    pairs: int
    """Sessions of which both sides are here."""
    pending: int
    """Sides whose counterpart has not come."""
    unpaired_client: int
    """Device sides whose counterpart did not come in time, so far."""
    unpaired_host: int
    """The same of host sides."""
    echo_age_s: float | None
    """Since its listener last heard itself; null where there is none."""
    tail_lag_s: float | None
    """How old the last news of the event log are."""
    forwarded_bytes: int
    """Payload, so far."""
    key_ids: list[str]
    """The signing keys that it holds."""
    signs_with: str | None
    """The one that signs."""


class NodeList(msgspec.Struct, frozen=True):
    """Nodes and workers, those that run for longest first; also some that left or died."""

    nodes: list[NodeBody]


class DrainWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``step_up_id`` is of the purpose ``manage_relay``."""

    step_up_id: UUID


@dataclass(frozen=True, slots=True)
class Nodes:
    """What operators see of nodes, and ask of them."""

    directory: NodeDirectory

    @operation("GET", "/api/v1/nodes", refuses={403: ("operator_required",)})
    async def list_nodes(self, call: Call[None]) -> NodeList:
        """All nodes and workers. Operators only."""
        return NodeList([self._body(each) for each in await self.directory.list(call.caller)])

    @operation(
        "POST",
        "/api/v1/nodes/{node_id}/drain",
        refuses={
            401: ("step_up_required",),
            403: ("operator_required",),
            404: ("node_unknown",),
            409: ("node_cannot_drain",),
        },
    )
    async def drain_node(self, call: Call[DrainWanted]) -> NodeBody:
        """Ask a node to leave in order: what is there moves to other nodes, then its process ends. Operators only.

        Asking again changes nothing.
        """
        node_id = NodeId(call.path_id("node_id", node_unknown()))
        return self._body(await self.directory.drain(node_id, call.caller, StepUpId(call.body.step_up_id)))

    def _body(self, listed: ListedNode) -> NodeBody:
        return NodeBody(
            node_id=listed.node.id,
            role=listed.node.role,
            state=listed.state.value,
            heard=self.directory.heard(listed),
            silent_s=listed.silent_s,
            origin=listed.node.origin,
            version=listed.node.version,
            started_at=listed.started_at,
            **asdict(listed.figures) | {"key_ids": list(listed.figures.key_ids)},
        )
