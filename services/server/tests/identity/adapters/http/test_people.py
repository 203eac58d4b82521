"""REST of persons on a real node: shapes, and how each refusal looks."""

from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from bothy_kit.cluster import ORIGIN
from bothy_kit.fake_device import FakeDevice

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOBODY = "0199aaaa-0000-7000-8000-00000000000a"
PERSON = {
    "person_id",
    "name",
    "is_operator",
    "state",
    "devices",
    "created_at",
    "disabled_at",
    "last_used_at",
}


def a_name(who="Robin"):
    return f"{who}-{uuid4().hex[:8]}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def operator(node):
    return await node.operator(a_name("Kim"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def person(node):
    return await node.device(a_name())


async def add(operator, name=None, *, is_operator=False, key=None):
    body = {"name": name or a_name(), "is_operator": is_operator}
    return await operator.act("manage_relay", "/persons", body, key=key)


async def person_id_of(device):
    return (await device.rest("GET", "/me")).body["person_id"]


async def test_a_person_is_added_and_joins_with_the_invite(node, operator):
    name = a_name()
    answer = await add(operator, name)
    assert (answer.status, set(answer.body)) == (201, {"person_id", "name", "invite", "expires_in_s", "code"})
    assert (answer.body["name"], answer.body["expires_in_s"], answer.body["code"]) == (name, 86400, None)
    async with FakeDevice(ORIGIN, node.nodes[0].url) as device:
        assert (await device.redeem(answer.body["invite"])).body["person_id"] == answer.body["person_id"]


async def test_a_person_that_exists_or_has_no_name_is_refused(operator):
    name = a_name()
    assert (await add(operator, name)).status == 201
    again = await add(operator, name)
    assert (again.status, again.code) == (409, "person_exists")
    unconfirmed = await operator.rest(
        "POST", "/persons", {"name": a_name(), "is_operator": False, "step_up_id": NOBODY}
    )
    assert (unconfirmed.status, unconfirmed.code) == (401, "step_up_required")
    bad = await add(operator, "\u00e9" * 33)
    assert (bad.status, bad.code) == (422, "name_invalid")


async def test_a_repeat_of_an_add_has_no_code(operator):
    step_up_id, name = await operator.step_up("manage_relay"), a_name()
    body = {"name": name, "is_operator": False, "step_up_id": step_up_id}
    first, second = [await operator.rest("POST", "/persons", body, key=name) for _ in range(2)]
    assert second.status == 201
    assert second.body == first.body | {"invite": None, "expires_in_s": None, "code": "already_issued"}
    other = await operator.rest("POST", "/persons", body | {"is_operator": True}, key=name)
    assert (other.status, other.code) == (422, "idempotency_mismatch")


async def test_who_never_had_a_device_is_invited_again(node, operator, person):
    path = f"/persons/{(await add(operator)).body['person_id']}/invites"
    invited = await operator.act("manage_relay", path)
    assert (invited.status, invited.body["code"]) == (201, None)
    step_up_id = await operator.step_up("manage_relay")
    repeats = [await operator.rest("POST", path, {"step_up_id": step_up_id}, key=path) for _ in range(2)]
    assert [(each.status, each.body["code"]) for each in repeats] == [(201, None), (201, "already_issued")]
    assert (await operator.rest("POST", path, {"step_up_id": NOBODY})).code == "step_up_required"
    refused = await operator.act("manage_relay", f"/persons/{await person_id_of(person)}/invites")
    assert (refused.status, refused.code) == (409, "person_has_device")
    unknown = await operator.act("manage_relay", f"/persons/{NOBODY}/invites")
    assert (unknown.status, unknown.code) == (404, "person_unknown")
    assert (await operator.act("manage_relay", f"/persons/{NOBODY.upper()}/invites")).code == "person_unknown"


async def test_persons_are_listed_with_counts(operator, person):
    person_id = await person_id_of(person)
    answer = await operator.rest("GET", "/persons")
    assert answer.status == 200
    assert {frozenset(each) for each in answer.body["persons"]} == {frozenset(PERSON)}
    (told,) = [each for each in answer.body["persons"] if each["person_id"] == person_id]
    assert (told["state"], told["devices"], told["is_operator"]) == ("enabled", 1, False)
    assert told["last_used_at"] is not None


async def test_the_devices_of_anybody_are_an_operators_to_see(operator, person):
    person_id = await person_id_of(person)
    answer = await operator.rest("GET", f"/persons/{person_id}/devices")
    assert [each["device_id"] for each in answer.body["devices"]] == [str(person.device_id)]
    assert (await operator.rest("GET", f"/persons/{NOBODY}/devices")).code == "person_unknown"
    assert (await person.rest("GET", f"/persons/{person_id}/devices")).status == 200
    refused = await person.rest("GET", f"/persons/{await person_id_of(operator)}/devices")
    assert (refused.status, refused.code) == (403, "operator_required")


async def test_a_person_is_disabled_and_enabled(node, operator):
    device = await node.device(a_name())
    path = f"/persons/{await person_id_of(device)}/state"
    disabled = await operator.act("manage_relay", path, {"state": "disabled"})
    assert (disabled.status, disabled.body["state"]) == (200, "disabled")
    assert (await device.rest("GET", "/me")).code == "token_invalid"
    refused = await device.login()
    assert (refused.status, refused.code) == (401, "person_disabled")
    invite = await operator.act("manage_relay", path.replace("/state", "/invites"))
    assert (invite.status, invite.code) == (409, "person_disabled")
    enabled = await operator.act("manage_relay", path, {"state": "enabled"})
    assert (enabled.body["state"], enabled.body["disabled_at"]) == ("enabled", None)
    assert (await device.login()).status == 200


async def test_a_state_needs_a_step_up_and_a_person(operator, person):
    path = f"/persons/{await person_id_of(person)}/state"
    unconfirmed = await operator.rest("POST", path, {"state": "disabled", "step_up_id": NOBODY})
    assert (unconfirmed.status, unconfirmed.code) == (401, "step_up_required")
    of_account = await operator.act("manage_account", path, {"state": "disabled"})
    assert (of_account.status, of_account.code) == (401, "step_up_required")
    unknown = await operator.act("manage_relay", f"/persons/{NOBODY}/state", {"state": "disabled"})
    assert (unknown.status, unknown.code) == (404, "person_unknown")
    bad = await operator.act("manage_relay", path, {"state": "retired"})
    assert (bad.status, bad.code) == (400, "body_invalid")


async def test_the_last_operator_stays(node, operator):
    await node.sql("UPDATE persons SET is_operator = false WHERE id <> %s", UUID(await person_id_of(operator)))
    refused = await operator.act(
        "manage_relay", f"/persons/{await person_id_of(operator)}/state", {"state": "disabled"}
    )
    assert (refused.status, refused.code) == (409, "last_operator")
    assert "operator" in refused.body["detail"]


async def test_persons_are_an_operators_affair(person):
    person_id = await person_id_of(person)
    listed = await person.rest("GET", "/persons")
    assert (listed.status, listed.code) == (403, "operator_required")
    for path, body in (
        ("/persons", {"name": a_name(), "is_operator": True}),
        (f"/persons/{person_id}/invites", {}),
        (f"/persons/{person_id}/state", {"state": "disabled"}),
    ):
        refused = await person.rest("POST", path, body | {"step_up_id": NOBODY})
        assert (refused.status, refused.code) == (403, "operator_required")
