"""A process enters itself, says how it is, and leaves; anybody may ask who is there, or ask one to go (``docs/spec/cluster.md``, N5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bothy_server.cluster.domain.node import WRITES_HEARD, Figures, HeldKeys, ListedNode, Node, NodeState
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Event, StorageUnavailable, Unit, UnitOfWork
from bothy_wire.ids import NodeId, StepUpId

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RegistryLimits:
    """Seconds (keys ``cluster.status_interval``, ``cluster.node_forget_after``)."""

    interval: float
    forget_after: float


class NodeStore(Protocol):
    """Rows of nodes."""

    async def write(self, node: Node, state: NodeState, figures: Figures) -> None:
        """Heartbeat and status of a node; enters one that has no row. ``active`` takes no order back that the row holds."""

    async def state(self, node_id: NodeId) -> NodeState | None:
        """The state in its row."""

    async def drain(self, node_id: NodeId) -> bool:
        """``active`` to ``draining``; whether it was active."""

    async def leave(self, node_id: NodeId) -> None:
        """Any state to ``leaving``."""

    async def keys_elsewhere(self, node_id: NodeId, within_s: float) -> list[HeldKeys]:
        """Of the other nodes that sign, have not left and wrote their status within the last seconds."""

    async def all(self) -> list[ListedNode]:
        """Every row, oldest start first."""

    async def prune(self, silent_s: float) -> int:
        """Remove nodes without a heartbeat for so long; how many went."""


class NodeRegistry:
    """One process in the table. :meth:`run` is its task between :meth:`enter` and :meth:`leave`."""

    def __init__(
        self,
        uow: UnitOfWork,
        clock: Clock,
        node: Node,
        figures: Callable[[], Figures],
        synchronize: Callable[[], Awaitable[None]],
        hear: Callable[[Sequence[HeldKeys]], None],
        limits: RegistryLimits,
    ) -> None:
        """With each write go ``synchronize``, which reads the database's clock (C), and ``hear``: the keys of the others."""
        self._uow = uow
        self._clock = clock
        self._node = node
        self._figures = figures
        self._synchronize = synchronize
        self._hear = hear
        self._limits = limits
        self._state = NodeState.ACTIVE
        self._told = NodeState.ACTIVE
        self._due = asyncio.Event()

    async def enter(self) -> None:
        """Tell the others of this node."""
        async with self._uow() as unit:
            others = await self._exchange(unit)
            unit.emit(Event("node.changed", node_id=self._node.id))
        self._hear(others)

    def drain(self) -> None:
        """It is ``draining`` from now on: written at once, or as soon as the database answers."""
        self._state = NodeState.DRAINING
        self._due.set()

    async def run(self) -> None:
        """Write every interval until cancelled. While the database is away the last clock reading holds."""
        while True:
            timer = self._clock.call_at(self._clock.monotonic() + self._limits.interval, self._due.set)
            try:
                await self._due.wait()
                self._due.clear()
                await self.write()
            except StorageUnavailable:
                continue
            finally:
                timer.cancel()

    async def write(self) -> None:
        """One status."""
        state = self._state
        async with self._uow() as unit:
            others = await self._exchange(unit)
            if state is not self._told:
                unit.emit(Event("node.changed", node_id=self._node.id))
        self._told = state
        self._hear(others)
        await self._synchronize()

    async def leave(self) -> None:
        """Tell the others that it goes; a database that is away learns it from the silence."""
        try:
            async with self._uow() as unit:
                await unit.of(NodeStore).leave(self._node.id)
                unit.emit(Event("node.changed", node_id=self._node.id))
        except StorageUnavailable:
            _log.warning("node left without a word: the database does not answer")

    async def _exchange(self, unit: Unit) -> list[HeldKeys]:
        store = unit.of(NodeStore)
        await store.write(self._node, self._state, self._figures())
        return await store.keys_elsewhere(self._node.id, WRITES_HEARD * self._limits.interval)


class Permission(Protocol):
    """What operators may ask of nodes; bound in the wiring, since the cluster knows no feature.

    The server's own command line, a caller of None, may do all of it.
    """

    async def check(self, unit: Unit, caller: Caller | None) -> None:
        """Whether the caller operates the relay, at this moment. Raises 403 ``operator_required``."""

    async def spend(self, unit: Unit, caller: Caller | None, step_up_id: StepUpId | None) -> None:
        """Spend the caller's confirmation. Raises 401 ``step_up_required``."""


def node_unknown() -> Problem:
    """For an id that no node has."""
    return Problem(404, "node_unknown", "No node has this id; `bothy-server node list` shows them.")


class NodeDirectory:
    """All nodes, for operators and for the sweep. ``caller`` is None on the server's own command line."""

    def __init__(self, uow: UnitOfWork, permission: Permission, limits: RegistryLimits) -> None:
        """``limits.forget_after`` bounds how long a silent node is listed."""
        self._uow = uow
        self._permission = permission
        self._limits = limits

    async def list(self, caller: Caller | None = None) -> list[ListedNode]:
        """Also those that left or died and were not forgotten yet. Raises 403 ``operator_required``."""
        async with self._uow() as unit:
            await self._permission.check(unit, caller)
            return await unit.of(NodeStore).all()

    async def drain(
        self, node_id: NodeId, caller: Caller | None = None, step_up_id: StepUpId | None = None
    ) -> ListedNode:
        """Ask a node to leave in order; what is known of it then. Asking again changes nothing.

        Raises 403 ``operator_required``, 404 ``node_unknown``, 409 ``node_cannot_drain``.
        """
        async with self._uow() as unit:
            await self._permission.check(unit, caller)
            found = await _draining_or_may(unit, node_id)
            if found.state is NodeState.DRAINING:
                return found
            await self._permission.spend(unit, caller, step_up_id)
            if await unit.of(NodeStore).drain(node_id):
                unit.audit(AuditEntry.by(caller, "node.drain", "asked"))
                unit.emit(Event("node.changed", node_id=node_id))
        return replace(found, state=NodeState.DRAINING)

    def heard(self, listed: ListedNode) -> bool:
        """Whether a node's figures are of now."""
        return listed.heard(self._limits.interval)

    async def prune(self) -> int:
        """Forget nodes that were silent for long; how many."""
        async with self._uow() as unit:
            return await unit.of(NodeStore).prune(self._limits.forget_after)


async def _draining_or_may(unit: Unit, node_id: NodeId) -> ListedNode:
    found = next((each for each in await unit.of(NodeStore).all() if each.node.id == node_id), None)
    if found is None:
        raise node_unknown()
    if found.node.role == "worker":
        raise Problem(409, "node_cannot_drain", "A worker holds no connection; it is stopped without a drain.")
    if found.state is NodeState.LEAVING:
        raise Problem(409, "node_cannot_drain", "The node has left.")
    return found
