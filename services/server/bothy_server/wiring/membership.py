"""A process in the table of nodes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from bothy_server import limits
from bothy_server.cluster.app.node_registry import NodeRegistry
from bothy_server.cluster.domain import node as cluster_node
from bothy_server.kernel.ids import new_id
from bothy_server.platform.health import Health
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.setting_values import Address
from bothy_server.platform.unit_of_work import SqlUnitOfWork
from bothy_server.wiring.in_sight import patiently_on
from bothy_server.wiring.process import Foundation
from bothy_wire.ids import NodeId

_log = logging.getLogger(__name__)


def this_process(base: Foundation, public: Address | None, node_id: NodeId | None = None) -> cluster_node.Node:
    """What a process says of itself; ``public`` is None for a worker."""
    made = node_id or NodeId(new_id(base.clock.now()))
    origin = None if public is None else f"http://{public}"
    return cluster_node.Node(made, base.settings.server.role, origin, version("bothy-relay"))


def registry(
    base: Foundation,
    uow: SqlUnitOfWork,
    node: cluster_node.Node,
    figures: Callable[[], cluster_node.Figures],
    hear: Callable[[Sequence[cluster_node.HeldKeys]], None] = lambda _: None,
) -> NodeRegistry:
    """Its place in the table, not entered yet. ``hear`` is told the keys of the others; a worker has no ear for them."""
    synchronize = partial(_synchronize, base)
    return NodeRegistry(uow, base.clock, node, figures, synchronize, hear, limits.registry(base.settings))


async def enter(base: Foundation, parts: Lifecycle, health: Health, registry: NodeRegistry) -> None:
    """Enter the table of nodes, and leave it as the first thing at the end."""

    @asynccontextmanager
    async def entered() -> AsyncIterator[None]:
        await patiently_on(base, registry.enter)
        health.enter()
        yield
        health.leave()
        await registry.leave()

    await parts.start("node", entered())
    parts.own("node_status", registry.run())


async def _synchronize(base: Foundation) -> None:
    await base.clock.synchronize(base.database)
    skew = base.clock.skew
    if skew is not None and abs(skew) > base.settings.cluster.clock_warn:
        _log.warning("clock differs from the database", extra={"bothy.clock.skew": round(skew, 1)})
