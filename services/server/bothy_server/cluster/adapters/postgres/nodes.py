"""Nodes and their figures in PostgreSQL."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.cluster.domain.node import Figures, HeldKeys, ListedNode, Node, NodeState
from bothy_wire.ids import NodeId

_FIGURES = [field.name for field in fields(Figures)]
_WRITE = text(f"""
    WITH node AS (
        INSERT INTO cluster_nodes AS known (node_id, origin, role, version, state)
        VALUES (:id, :origin, :role, :version, :state)
        ON CONFLICT (node_id) DO UPDATE SET heartbeat_at = now(),
            state = CASE WHEN excluded.state = 'active' THEN known.state ELSE excluded.state END
        RETURNING node_id
    )
    INSERT INTO node_status (node_id, {", ".join(_FIGURES)})
    SELECT node_id, {", ".join(f":{name}" for name in _FIGURES)} FROM node
    ON CONFLICT (node_id) DO UPDATE
    SET written_at = now(), {", ".join(f"{name} = excluded.{name}" for name in _FIGURES)}
""")
_DRAIN = text("UPDATE cluster_nodes SET state = 'draining' WHERE node_id = :id AND state = 'active'")
_LEAVE = text("UPDATE cluster_nodes SET state = 'leaving', heartbeat_at = now() WHERE node_id = :id")
_STATE = text("SELECT state FROM cluster_nodes WHERE node_id = :id")
_KEYS_ELSEWHERE = text("""
    SELECT node_id, key_ids, signs_with FROM node_status JOIN cluster_nodes USING (node_id)
    WHERE node_id <> :id AND state <> 'leaving' AND signs_with IS NOT NULL
      AND written_at > now() - make_interval(secs => :within_s)
    ORDER BY node_id
""")
_ALL = text(f"""
    SELECT node.*, extract(epoch FROM now() - heartbeat_at) AS silent_s, {", ".join(_FIGURES)}
    FROM cluster_nodes node JOIN node_status USING (node_id) ORDER BY started_at, node_id
""")
_PRUNE = text("DELETE FROM cluster_nodes WHERE heartbeat_at < now() - make_interval(secs => :silent_s)")


class PostgresNodeStore:
    """Implements the port ``NodeStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def write(self, node: Node, state: NodeState, figures: Figures) -> None:
        """See the port."""
        values = asdict(node) | {"state": state.value} | asdict(figures) | {"key_ids": list(figures.key_ids)}
        await self._connection.execute(_WRITE, values)

    async def state(self, node_id: NodeId) -> NodeState | None:
        """See the port."""
        state = (await self._connection.execute(_STATE, {"id": node_id})).scalar_one_or_none()
        return None if state is None else NodeState(state)

    async def drain(self, node_id: NodeId) -> bool:
        """See the port."""
        return (await self._connection.execute(_DRAIN, {"id": node_id})).rowcount == 1

    async def leave(self, node_id: NodeId) -> None:
        """See the port."""
        await self._connection.execute(_LEAVE, {"id": node_id})

    async def keys_elsewhere(self, node_id: NodeId, within_s: float) -> list[HeldKeys]:
        """See the port."""
        rows = await self._connection.execute(_KEYS_ELSEWHERE, {"id": node_id, "within_s": within_s})
        return [HeldKeys(NodeId(row.node_id), tuple(row.key_ids), row.signs_with) for row in rows]

    async def all(self) -> list[ListedNode]:
        """See the port."""
        return [_listed(row) for row in await self._connection.execute(_ALL)]

    async def prune(self, silent_s: float) -> int:
        """See the port."""
        return (await self._connection.execute(_PRUNE, {"silent_s": silent_s})).rowcount


def _listed(row: Row[Any]) -> ListedNode:
    figures = {name: getattr(row, name) for name in _FIGURES} | {"key_ids": tuple(row.key_ids)}
    node = Node(NodeId(row.node_id), row.role, row.origin, row.version)
    return ListedNode(node, NodeState(row.state), row.started_at, float(row.silent_s), Figures(**figures))
