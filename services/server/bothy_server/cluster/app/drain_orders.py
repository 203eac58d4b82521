"""A node reads in its own row that it is to drain (``docs/spec/cluster.md``, N2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bothy_server.cluster.app.node_registry import NodeStore
from bothy_server.cluster.domain.node import NodeState
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import UnitOfWork
from bothy_wire.ids import NodeId


class DrainOrders:
    """Implements ``TailSubscriber``."""

    def __init__(self, uow: UnitOfWork, node_id: NodeId, begin: Callable[[], None]) -> None:
        """``begin`` may be called more than once."""
        self._uow = uow
        self._node_id = node_id
        self._begin = begin

    async def on_events(self, events: Sequence[LoggedEvent]) -> None:
        """See the port."""
        if any(each.event.type == "node.changed" and each.event.node_id == self._node_id for each in events):
            await self._read()

    async def on_gap(self) -> None:
        """See the port."""
        await self._read()

    async def _read(self) -> None:
        async with self._uow() as unit:
            state = await unit.of(NodeStore).state(self._node_id)
        if state is NodeState.DRAINING:
            self._begin()
