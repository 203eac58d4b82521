"""A node reads in its own row that it is to drain."""

from datetime import UTC, datetime

import pytest

from bothy_server.cluster.app.drain_orders import DrainOrders
from bothy_server.cluster.app.node_registry import NodeDirectory, NodeStore, RegistryLimits
from bothy_server.cluster.domain.node import Figures, Node, NodeState
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import Event
from bothy_wire.ids import NodeId


@pytest.fixture
async def node(rows):
    node = Node(NodeId(rows.new_id()), "api", "http://127.0.0.1:8080", "1.0")
    async with rows.uow() as unit:
        await unit.of(NodeStore).write(node, NodeState.ACTIVE, Figures())
    return node


@pytest.fixture
def begun():
    return []


@pytest.fixture
def orders(rows, node, begun):
    return DrainOrders(rows.uow, node.id, lambda: begun.append(node.id))


def changed(node_id):
    return LoggedEvent(1, Event("node.changed", node_id=node_id), datetime.now(UTC))


class CommandLine:
    """May do everything."""

    async def check(self, unit, caller):
        assert caller is None

    async def spend(self, unit, caller, step_up_id):
        assert caller is None


async def test_an_order_is_read_when_the_node_is_named(rows, node, orders, begun):
    await orders.on_events([changed(node.id)])
    assert begun == [], "it is active"
    await NodeDirectory(rows.uow, CommandLine(), RegistryLimits(10, 3600)).drain(node.id)
    await orders.on_events([changed(rows.new_id()), LoggedEvent(1, Event("keys.changed"), datetime.now(UTC))])
    assert begun == [], "another node is named"
    await orders.on_events([changed(node.id)])
    assert begun == [node.id]


async def test_an_order_that_was_missed_is_found(rows, node, orders, begun):
    await NodeDirectory(rows.uow, CommandLine(), RegistryLimits(10, 3600)).drain(node.id)
    await orders.on_gap()
    assert begun == [node.id]


async def test_a_row_that_is_gone_orders_nothing(rows, node, orders, begun):
    await rows.run("DELETE FROM cluster_nodes WHERE node_id = :id", id=node.id)
    await orders.on_gap()
    assert begun == []
