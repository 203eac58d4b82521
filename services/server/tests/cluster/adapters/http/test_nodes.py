"""REST of nodes on a real node: shapes, and how a refusal looks."""

from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOBODY = "0199aaaa-0000-7000-8000-00000000000a"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def operator(node):
    return await node.operator(f"Kim-{uuid4().hex[:8]}")


async def another(node, role="api", state="active"):
    """The rows of a node that is not there."""
    node_id = uuid4()
    await node.sql(
        "INSERT INTO cluster_nodes (node_id, role, state, version) VALUES (%s, %s, %s, '1')", node_id, role, state
    )
    await node.sql(
        "INSERT INTO node_status (node_id, sides, pairs, pending, unpaired_client, unpaired_host, forwarded_bytes, key_ids)"
        " VALUES (%s, 4, 1, 2, 8, 9, 1099511627776, '{}')",
        node_id,
    )
    return str(node_id)


async def test_a_node_is_told_as_the_contract_says(node, operator):
    answer = await operator.rest("GET", "/nodes")
    assert answer.status == 200
    (own,) = [each for each in answer.body["nodes"] if UUID(each["node_id"]) == node.nodes[0].node.id]
    started = datetime.fromisoformat(own.pop("started_at"))
    assert started > datetime.now(UTC) - timedelta(minutes=10)
    assert 0 <= own.pop("silent_s") < 30
    assert own.pop("signs_with") in own.pop("key_ids")
    assert 0 <= own.pop("tail_lag_s") < 30
    counted = ("controls", "sides", "pairs", "pending", "unpaired_client", "unpaired_host", "forwarded_bytes")
    assert own == {
        "node_id": str(node.nodes[0].node.id),
        "role": "all",
        "state": "active",
        "heard": True,
        "origin": node.nodes[0].url,
        "version": version("bothy-relay"),
        "echo_age_s": None,
        **dict.fromkeys(counted, 0),
    }


async def test_figures_are_those_of_the_row(node, operator):
    node_id = await another(node)
    nodes = (await operator.rest("GET", "/nodes")).body["nodes"]
    (found,) = [each for each in nodes if each["node_id"] == node_id]
    told = {name: found[name] for name in ("sides", "pairs", "pending", "unpaired_client", "unpaired_host")}
    assert told == {"sides": 4, "pairs": 1, "pending": 2, "unpaired_client": 8, "unpaired_host": 9}
    assert (found["forwarded_bytes"], found["origin"], found["signs_with"]) == (2**40, None, None)


async def test_an_operator_asks_a_node_to_leave(node, operator):
    node_id = await another(node)
    answer = await operator.act("manage_relay", f"/nodes/{node_id}/drain")
    assert (answer.status, answer.body["node_id"], answer.body["state"]) == (200, node_id, "draining")
    again = await operator.rest("POST", f"/nodes/{node_id}/drain", {"step_up_id": NOBODY})
    assert (again.status, again.body["state"]) == (200, "draining"), "it needs no confirmation to change nothing"


@pytest.mark.parametrize(
    ("role", "state", "status", "code"),
    [
        ("api", "active", 401, "step_up_required"),
        ("worker", "active", 409, "node_cannot_drain"),
        ("all", "leaving", 409, "node_cannot_drain"),
    ],
)
async def test_a_drain_that_is_refused_says_why(node, operator, role, state, status, code):
    node_id = await another(node, role, state)
    answer = await operator.rest("POST", f"/nodes/{node_id}/drain", {"step_up_id": NOBODY})
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.parametrize("node_id", [NOBODY, NOBODY.upper(), "x"])
async def test_a_node_that_is_not_there_is_unknown(operator, node_id):
    answer = await operator.rest("POST", f"/nodes/{node_id}/drain", {"step_up_id": NOBODY})
    assert (answer.status, answer.code) == (404, "node_unknown")


async def test_who_is_no_operator_learns_nothing_of_nodes(node):
    device, _ = await node.couple()
    own = str(node.nodes[0].node.id)
    for method, path, body in (("GET", "/nodes", None), ("POST", f"/nodes/{own}/drain", {"step_up_id": NOBODY})):
        answer = await device.rest(method, path, body)
        assert (answer.status, answer.code) == (403, "operator_required")
