"""Whether a node's figures are of now."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from bothy_server.cluster.domain.node import WRITES_HEARD, Figures, ListedNode, Node, NodeState
from bothy_wire.ids import NodeId

INTERVAL = 10.0
LONGEST = WRITES_HEARD * INTERVAL


@pytest.mark.parametrize(
    ("state", "silent_s", "heard"),
    [
        (NodeState.ACTIVE, 0, True),
        (NodeState.ACTIVE, LONGEST, True),
        (NodeState.ACTIVE, LONGEST + 0.1, False),
        (NodeState.DRAINING, LONGEST, True),
        (NodeState.DRAINING, LONGEST + 0.1, False),
        (NodeState.LEAVING, 0, False),
    ],
)
def test_a_node_is_heard_while_it_writes_and_until_it_leaves(state, silent_s, heard):
    node = Node(NodeId(UUID(int=1)), "api", "http://127.0.0.1:8080", "1")
    listed = ListedNode(node, state, datetime(2030, 1, 1, tzinfo=UTC), silent_s, Figures())
    assert listed.heard(INTERVAL) is heard
