"""REST of the audit on a real node."""

from uuid import uuid4

import pytest

from bothy_server.platform.audit import AUDIT_ACTIONS

pytestmark = pytest.mark.asyncio(loop_scope="module")
NODE_SETTINGS = {"identity": {"audit_scan": 1000}}


async def test_an_operator_reads_what_was_decided_page_by_page(node):
    operator = await node.operator(f"Kim-{uuid4().hex[:8]}")
    device, host = await node.couple()
    await device.manage("/rename", {"name": f"lab-{uuid4().hex[:8]}"}, host_id=host.host_id)
    path = f"/audit?host_id={host.host_id}&limit=2"
    answer = await operator.rest("GET", path)
    assert (answer.status, set(answer.body)) == (200, {"entries", "before"})
    newest = answer.body["entries"][0]
    assert newest == {
        "position": newest["position"],
        "at": newest["at"],
        "action": "host.rename",
        "code": "renamed",
        "person_id": newest["person_id"],
        "device_id": str(device.device_id),
        "host_id": str(host.host_id),
        "session_id": None,
        "subject_person_id": None,
        "subject_device_id": None,
    }
    actions, entries = [], answer.body
    while True:
        actions += [each["action"] for each in entries["entries"]]
        if entries["before"] is None:
            break
        entries = (await operator.rest("GET", f"{path}&before={entries['before']}")).body
    assert actions[-1] == "host.create"
    assert actions.count("host.rename") == 1


async def test_a_person_reads_their_own_entries_alone(node):
    device, _ = await node.couple()
    other, host = await node.couple()
    await other.manage("/rename", {"name": f"lab-{uuid4().hex[:8]}"}, host_id=host.host_id)
    refused = await device.rest("GET", "/audit")
    assert (refused.status, refused.code) == (403, "operator_required")
    answer = await device.rest("GET", "/audit/mine")
    assert answer.status == 200
    assert answer.body["entries"]
    for each in answer.body["entries"]:
        assert str(device.device_id) in {each["device_id"], each["subject_device_id"]} or each["subject_person_id"]
        assert str(other.device_id) not in each.values()
    assert (await device.rest("GET", f"/audit/mine?host_id={host.host_id}")).body["entries"] == []


@pytest.mark.parametrize("action", sorted(AUDIT_ACTIONS))
async def test_every_action_may_be_asked_for(node, action):
    device, _ = await node.couple()
    answer = await device.rest(
        "GET", f"/audit/mine?action={action}&since=2020-01-01T00:00:00Z&until=2030-01-01T00:00:00Z"
    )
    assert answer.status == 200
    assert {each["action"] for each in answer.body["entries"]} <= {action}


@pytest.mark.parametrize(
    "query", ["action=host.paint", "limit=0", "limit=501", "before=0", "since=yesterday", "host_id=x", "person=Robin"]
)
async def test_a_query_is_strict(node, query):
    operator = await node.operator(f"Kim-{uuid4().hex[:8]}")
    for path in ("/audit", "/audit/mine"):
        answer = await operator.rest("GET", f"{path}?{query}")
        assert (answer.status, answer.code) == (400, "query_invalid")
