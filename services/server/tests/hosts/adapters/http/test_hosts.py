"""REST of hosts on a real node: shapes, and how a refusal looks."""

from datetime import datetime
from uuid import UUID, uuid4

import httpx2 as httpx
import pytest
import pytest_asyncio

from bothy_kit.fake_device import b64
from bothy_kit.fake_host import FakeHost
from bothy_server.hosts.domain.host import HostState, sources
from bothy_wire.signing import fingerprint

pytestmark = pytest.mark.asyncio(loop_scope="module")
NODE_SETTINGS = {"hosts": {"pairing": "confirm"}}
NOBODY = "0199aaaa-0000-7000-8000-00000000000a"


@pytest_asyncio.fixture(loop_scope="module")
async def couple(node):
    return await node.couple()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def known(node):
    """A device and its pending host, for tests that leave nothing behind."""
    return await node.couple()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def operator(node):
    name = f"Alex-{uuid4().hex[:8]}"
    await node.admin.people.add(name, is_operator=True)
    return await node.another_device(name)


async def test_a_host_is_told_as_the_contract_says(couple):
    device, host = couple
    channel_key = host.channel_key.public_key().public_bytes_raw()
    shown = fingerprint(channel_key)
    pending = await device.rest("GET", f"/hosts/{host.host_id}")
    assert (pending.status, pending.body["state"], pending.body["profiles"]) == (200, "pending", {})
    confirmed = await device.manage("/confirm", {"fingerprint": shown}, host_id=host.host_id)
    assert (confirmed.status, confirmed.body["state"]) == (200, "active")
    await (await host.connect()).handled()
    told = (await device.rest("GET", f"/hosts/{host.host_id}")).body
    assert datetime.fromisoformat(told.pop("last_seen_at")).utcoffset().total_seconds() == 0
    assert told.pop("name").startswith("lab-")
    assert told == {
        "host_id": str(host.host_id),
        "state": "active",
        "disabled_reason": None,
        "presence": "online",
        "profiles": {"shell": ["alex-shell"]},
        "channel_key": b64(channel_key),
        "fingerprint": shown,
        "owner": True,
        "session_users": [],
    }
    (listed,) = (await device.rest("GET", "/hosts")).body["hosts"]
    assert listed.keys() == pending.body.keys()


async def test_a_guest_sees_as_whom_they_may_work(node, couple):
    _, host = couple
    guest, _ = await node.couple()
    await node.sql(
        'INSERT INTO host_grants (host_id, person_id, "right", "session_user")'
        " SELECT %s, person_id, 'terminal', account FROM devices, unnest(ARRAY['robin-shell', 'alex-shell']) account"
        " WHERE id = %s",
        host.host_id,
        guest.device_id,
    )
    told = (await guest.rest("GET", f"/hosts/{host.host_id}")).body
    assert (told["owner"], told["session_users"]) == (False, ["alex-shell", "robin-shell"])


async def test_an_operator_makes_a_host_and_its_code(operator, node):
    name = f"lab-{uuid4().hex[:8]}"
    wanted = {"name": name, "step_up_id": await operator.step_up("manage_relay")}
    made = await operator.rest("POST", "/hosts", wanted)
    assert (made.status, made.body["name"], made.body["state"]) == (201, name, "pending")
    assert (made.body["owner"], made.body["channel_key"], made.body["fingerprint"]) == (True, None, None)
    assert UUID(made.body["host_id"]).version == 7
    again = await operator.rest("POST", "/hosts", wanted)
    assert (again.status, again.code) == (409, "host_exists")
    unconfirmed = await operator.rest("POST", "/hosts", {**wanted, "name": f"{name}-2"})
    assert (unconfirmed.status, unconfirmed.code) == (401, "step_up_required")
    code = await operator.manage("/pairing-codes", host_id=made.body["host_id"])
    assert (code.status, set(code.body), code.body["expires_in_s"]) == (201, {"code", "expires_in_s"}, 900)
    host = FakeHost(operator.origin, node.nodes[0].url)
    answer = await host.pair(code.body["code"])
    assert (answer.status_code, set(answer.json())) == (201, {"host_id", "name", "state", "pairing_seq", "join"})
    assert (answer.json()["state"], answer.json()["pairing_seq"]) == ("pending", 1)
    used = await host.pair(code.body["code"])
    assert (used.status_code, used.json()["code"]) == (401, "pairing_code_invalid")


async def test_an_operator_says_who_owns_a_host(operator, node, known):
    device, host = known
    ((only,),) = [(await device.rest("GET", f"/hosts/{host.host_id}/owners")).body["owners"]]
    wanted = {"name": f"lab-{uuid4().hex[:8]}", "owner": only["person_name"]}
    made = await operator.rest("POST", "/hosts", wanted | {"step_up_id": await operator.step_up("manage_relay")})
    assert (made.status, made.body["owner"]) == (201, False)
    assert (await device.rest("GET", f"/hosts/{made.body['host_id']}")).body["owner"] is True
    unknown = {"name": f"lab-{uuid4().hex[:8]}", "owner": "Nobody", "step_up_id": NOBODY}
    answer = await operator.rest("POST", "/hosts", unknown)
    assert (answer.status, answer.code) == (404, "person_unknown")


async def test_a_host_is_renamed(node, couple):
    device, host = couple
    name = f"lab-{uuid4().hex[:8]}"
    renamed = await device.manage("/rename", {"name": name}, host_id=host.host_id)
    assert (renamed.status, renamed.body["name"]) == (200, name)
    other = await node.host(f"lab-{uuid4().hex[:8]}", (await node.sql("SELECT name FROM persons LIMIT 1"))[0][0])
    ((taken,),) = await node.sql("SELECT name FROM hosts WHERE id = %s", other.host_id)
    for wanted, status, code in ((taken, 409, "host_exists"), ("\u00e9" * 33, 422, "name_invalid")):
        answer = await device.manage("/rename", {"name": wanted}, host_id=host.host_id)
        assert (answer.status, answer.code) == (status, code)
    body = {"name": f"lab-{uuid4().hex[:8]}", "step_up_id": NOBODY}
    answer = await device.rest("POST", f"/hosts/{host.host_id}/rename", body)
    assert (answer.status, answer.code) == (401, "step_up_required")


async def test_the_keys_of_a_host_are_no_other_hosts(operator, node, known):
    _, paired = known
    wanted = {"name": f"lab-{uuid4().hex[:8]}", "step_up_id": await operator.step_up("manage_relay")}
    made = (await operator.rest("POST", "/hosts", wanted)).body["host_id"]
    code = (await operator.manage("/pairing-codes", host_id=made)).body["code"]
    copied = FakeHost(operator.origin, node.nodes[0].url)
    copied.signing_key, copied.channel_key = paired.signing_key, paired.channel_key
    answer = await copied.pair(code)
    assert (answer.status_code, answer.json()["code"]) == (409, "host_key_exists")


async def test_nobody_else_makes_a_host(known):
    device, _ = known
    answer = await device.rest("POST", "/hosts", {"name": "lab", "step_up_id": NOBODY})
    assert (answer.status, answer.code) == (403, "operator_required")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": ""}, 400, "body_invalid"),
        ({"name": "x" * 65}, 400, "body_invalid"),
        ({"name": "lab\u0000"}, 400, "body_invalid"),
        ({"name": "\u00e9" * 33}, 422, "name_invalid"),
        ({"name": "lab", "owner": ""}, 400, "body_invalid"),
        ({"name": "lab", "state": "active"}, 400, "body_invalid"),
    ],
)
async def test_a_name_that_cannot_be_is_refused(operator, body, status, code):
    answer = await operator.rest("POST", "/hosts", {**body, "step_up_id": NOBODY})
    assert (answer.status, answer.code) == (status, code)


async def test_another_fingerprint_is_a_conflict(known):
    device, host = known
    answer = await device.manage("/confirm", {"fingerprint": "SHA256:other"}, host_id=host.host_id)
    assert (answer.status, answer.code) == (409, "fingerprint_mismatch")


ACTS = {
    "confirm": ("/confirm", {}, "active"),
    "disable": ("/state", {"state": "disabled"}, "disabled"),
    "enable": ("/state", {"state": "active"}, "active"),
    "retire": ("/state", {"state": "retired"}, "retired"),
    "code": ("/pairing-codes", {}, "pending"),
}
REFUSED = {"confirm": (409, "host_not_pending"), "code": (404, "host_unknown")}
"""What an act that finds no move in the table is answered with, where it is not a conflict of states."""


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("state", [each.value for each in HostState])
async def test_every_act_in_every_state(node, state, act):
    """A move of the table is made, with a step-up of its own; the state that is wanted already changes nothing."""
    device, host = await node.couple()
    await node.sql("UPDATE hosts SET state = %s WHERE id = %s", state, host.host_id)
    path, body, target = ACTS[act]
    if act == "confirm":
        body = {"fingerprint": fingerprint(host.channel_key.public_key().public_bytes_raw())}
    allowed = state in sources(act) or (act, state) == ("code", "pending")
    unconfirmed = await device.rest("POST", f"/hosts/{host.host_id}{path}", body | {"step_up_id": NOBODY})
    answer = await device.manage(path, body, host_id=host.host_id)
    ((now,),) = await node.sql("SELECT state FROM hosts WHERE id = %s", host.host_id)
    if allowed:
        assert (unconfirmed.status, unconfirmed.code) == (401, "step_up_required")
        assert (answer.status, now) == (201 if act == "code" else 200, target)
    elif state == target:
        assert (unconfirmed.status, answer.status, now) == (200, 200, state)
    else:
        assert (answer.status, answer.code) == REFUSED.get(act, (409, "host_state_conflict"))
        assert (unconfirmed.code, now) == (answer.code, state)


async def test_a_host_whose_key_was_copied_is_not_enabled(node):
    device, host = await node.couple()
    await node.sql(
        "UPDATE hosts SET state = 'disabled', disabled_reason = 'duplicate_connection' WHERE id = %s", host.host_id
    )
    answer = await device.manage("/state", {"state": "active"}, host_id=host.host_id)
    assert (answer.status, answer.code) == (409, "host_state_conflict")
    assert (await device.manage("/pairing-codes", host_id=host.host_id)).status == 201


async def test_a_retired_host_gives_its_name_free_and_its_code_wakes_it_no_more(node, operator):
    device, host = await node.couple()
    name = (await device.rest("GET", f"/hosts/{host.host_id}")).body["name"]
    code = (await device.manage("/pairing-codes", host_id=host.host_id)).body["code"]
    assert (await device.manage("/state", {"state": "retired"}, host_id=host.host_id)).status == 200
    late = await host.pair(code)
    assert (late.status_code, late.json()["code"]) == (401, "pairing_code_invalid")
    wanted = {"name": name, "step_up_id": await operator.step_up("manage_relay")}
    assert (await operator.rest("POST", "/hosts", wanted)).status == 201
    assert (await device.manage("/rename", {"name": name}, host_id=host.host_id)).code == "host_unknown"


async def test_an_owner_disables_and_enables_a_host(node):
    device, host = await node.couple()
    early = await device.manage("/state", {"state": "disabled"}, host_id=host.host_id)
    assert (early.status, early.code) == (409, "host_state_conflict")
    await node.sql("UPDATE hosts SET state = 'active' WHERE id = %s", host.host_id)
    disabled = await device.manage("/state", {"state": "disabled"}, host_id=host.host_id)
    assert (disabled.status, disabled.body["state"], disabled.body["disabled_reason"]) == (200, "disabled", "operator")
    enabled = await device.manage("/state", {"state": "active"}, host_id=host.host_id)
    assert (enabled.status, enabled.body["state"], enabled.body["disabled_reason"]) == (200, "active", None)


@pytest.mark.parametrize("body", [{}, {"state": "pending"}, {"state": "off"}, {"state": "active", "reason": "x"}])
async def test_a_state_that_nobody_may_ask_for_is_refused(known, body):
    device, host = known
    answer = await device.rest("POST", f"/hosts/{host.host_id}/state", {**body, "step_up_id": NOBODY})
    assert (answer.status, answer.code) == (400, "body_invalid")


@pytest.mark.parametrize("host_id", [NOBODY, NOBODY.upper(), "x", NOBODY.replace("-", "")])
async def test_a_host_that_is_not_there_is_unknown_on_every_path(known, host_id):
    device, _ = known
    for method, path, body in (
        ("GET", "", None),
        ("POST", "/pairing-codes", {"step_up_id": NOBODY}),
        ("POST", "/confirm", {"fingerprint": "SHA256:x", "step_up_id": NOBODY}),
        ("POST", "/state", {"state": "disabled", "step_up_id": NOBODY}),
        ("POST", "/rename", {"name": "lab", "step_up_id": NOBODY}),
    ):
        answer = await device.rest(method, f"/hosts/{host_id}{path}", body)
        assert (answer.status, answer.code) == (404, "host_unknown")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/hosts"),
        ("POST", "/hosts"),
        ("GET", f"/hosts/{NOBODY}"),
        ("POST", f"/hosts/{NOBODY}/pairing-codes"),
        ("POST", f"/hosts/{NOBODY}/confirm"),
        ("POST", f"/hosts/{NOBODY}/state"),
    ],
)
async def test_every_path_but_pairing_needs_an_access_token(node, method, path):
    async with httpx.AsyncClient(trust_env=False) as rest:
        answer = await rest.request(method, f"{node.nodes[0].url}/api/v1{path}")
    assert (answer.status_code, answer.json()["code"]) == (401, "token_invalid")
