"""REST of one's own account and devices on a real node: shapes, and how each refusal looks."""

from uuid import uuid4

import pytest

from bothy_kit.cluster import ORIGIN
from bothy_kit.fake_device import FakeDevice
from bothy_wire.signing import fingerprint

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOBODY = "0199aaaa-0000-7000-8000-00000000000a"
DEVICE = {
    "device_id",
    "person_id",
    "name",
    "kind",
    "added_by",
    "fingerprint",
    "created_at",
    "last_used_at",
    "revoked_at",
}


def a_name():
    return f"Robin-{uuid4().hex[:8]}"


async def two_devices(node):
    name = a_name()
    return await node.device(name), await node.another_device(name)


async def test_a_device_is_told_who_it_is(node):
    name = a_name()
    device = await node.device(name)
    answer = await device.rest("GET", "/me")
    person_id = answer.body.pop("person_id")
    assert (answer.status, answer.body) == (
        200,
        {
            "person_name": name,
            "is_operator": False,
            "device_id": str(device.device_id),
            "device_name": "laptop",
            "kind": "cli",
        },
    )
    (listed,) = (await device.rest("GET", "/devices")).body["devices"]
    assert (set(listed), listed["person_id"]) == (DEVICE, person_id)
    assert listed["fingerprint"] == fingerprint(device.channel_key.public_key().public_bytes_raw())


async def test_a_device_invites_another_one(node):
    device = await node.device(a_name())
    invited = await device.act("manage_account", "/devices/invites")
    assert (invited.status, invited.body["expires_in_s"], invited.body["code"]) == (201, 86400, None)
    async with FakeDevice(ORIGIN, node.nodes[0].url) as new:
        assert (await new.redeem(invited.body["invite"], "phone")).body["person_id"] == invited.body["person_id"]
    assert [each["name"] for each in (await device.rest("GET", "/devices")).body["devices"]] == ["laptop", "phone"]
    unconfirmed = await device.rest("POST", "/devices/invites", {"step_up_id": NOBODY})
    assert (unconfirmed.status, unconfirmed.code) == (401, "step_up_required")


async def test_a_repeated_invite_has_no_code(node):
    device = await node.device(a_name())
    body = {"step_up_id": await device.step_up("manage_account")}
    first, second = [await device.rest("POST", "/devices/invites", body, key="once") for _ in range(2)]
    assert second.body == first.body | {"invite": None, "expires_in_s": None, "code": "already_issued"}


async def test_a_device_is_revoked_by_another_one_of_its_person(node):
    lost, kept = await two_devices(node)
    path = f"/devices/{lost.device_id}/revoke"
    unconfirmed = await kept.rest("POST", path, {"step_up_id": NOBODY})
    assert (unconfirmed.status, unconfirmed.code) == (401, "step_up_required")
    revoked = await kept.act("manage_account", path)
    assert (revoked.status, revoked.body["device_id"]) == (200, str(lost.device_id))
    assert revoked.body["revoked_at"] is not None
    assert (await kept.act("manage_account", path)).body == revoked.body
    assert (await lost.rest("GET", "/me")).code == "token_invalid"
    refused = await lost.login()
    assert (refused.status, refused.code) == (401, "device_revoked")
    assert "revoked" in refused.body["detail"]


async def test_an_operator_revokes_anybodys_device_with_the_step_up_for_the_relay(node):
    device, operator = await node.device(a_name()), await node.operator(a_name())
    path = f"/devices/{device.device_id}/revoke"
    assert (await operator.act("manage_account", path)).code == "step_up_required"
    assert (await operator.act("manage_relay", path)).status == 200


async def test_somebody_elses_device_is_unknown(node):
    device, stranger = await node.device(a_name()), await node.device(a_name())
    for device_id in (device.device_id, NOBODY, "no-id"):
        refused = await stranger.act("manage_account", f"/devices/{device_id}/revoke")
        assert (refused.status, refused.code) == (404, "device_unknown")
    assert (await device.rest("GET", "/me")).status == 200


async def test_a_device_logs_out(node):
    device, other = await two_devices(node)
    answer = await device.rest("POST", "/auth/logout", {})
    assert (answer.status, answer.body["revoked_at"] is not None) == (200, True)
    assert (await device.rest("POST", "/auth/logout", {})).code == "token_invalid"
    assert (await other.rest("GET", "/me")).status == 200


async def test_what_needs_an_access_token_says_so(node):
    async with FakeDevice(ORIGIN, node.nodes[0].url) as nobody:
        for method, path, body in (
            ("GET", "/me", None),
            ("GET", "/devices", None),
            ("POST", "/devices/invites", {"step_up_id": NOBODY}),
            ("POST", f"/devices/{NOBODY}/revoke", {"step_up_id": NOBODY}),
            ("POST", "/auth/logout", {}),
            ("GET", "/persons", None),
        ):
            refused = await nobody.rest(method, path, body)
            assert (refused.status, refused.code) == (401, "token_invalid")
