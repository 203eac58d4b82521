"""REST of login and step-up on a real node: shapes, and how a refusal looks."""

import base64
from uuid import UUID, uuid4

import httpx2 as httpx
import pytest
import pytest_asyncio

from bothy_kit.cluster import ORIGIN, cluster
from bothy_kit.fake_device import FakeDevice, b64
from bothy_wire.signing import Purpose, sign

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOBODY = "0199aaaa-0000-7000-8000-00000000000a"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def device(node):
    return (await node.couple())[0]


async def test_an_invite_becomes_a_device(node):
    name = f"Robin-{uuid4().hex[:8]}"
    invited = await node.admin.people.add(name, is_operator=False)
    async with FakeDevice(ORIGIN, node.nodes[0].url) as device:
        answer = await device.redeem(invited.code)
        assert (answer.status, set(answer.body)) == (201, {"device_id", "person_id", "person_name"})
        assert (answer.body["person_id"], answer.body["person_name"]) == (str(invited.person_id), name)
        again = await device.redeem(invited.code)
        assert (again.status, again.code) == (401, "invite_invalid")


async def test_the_keys_of_a_device_make_no_other_one(node, device):
    invited = await node.admin.people.add(f"Robin-{uuid4().hex[:8]}", is_operator=False)
    async with FakeDevice(ORIGIN, node.nodes[0].url) as again:
        again.signing_key, again.channel_key = device.signing_key, device.channel_key
        answer = await again.redeem(invited.code)
    assert (answer.status, answer.code) == (409, "device_exists")


async def test_a_name_is_measured_in_bytes_and_holds_no_control_characters(node):
    invite = (await node.admin.people.add(f"Robin-{uuid4().hex[:8]}", is_operator=False)).code
    async with FakeDevice(ORIGIN, node.nodes[0].url) as device:
        for bad in ("\u00e9" * 33, "lap\x00top", "lap\x1btop", "", "x" * 65):
            answer = await device.redeem(invite, bad)
            assert (answer.status, answer.code) in {(400, "body_invalid"), (422, "name_invalid")}, bad
        assert (await device.redeem(invite, "\u00e9" * 32)).status == 201


async def test_a_login_is_a_challenge_and_a_token(device):
    made = await device.rest("POST", "/auth/challenge", {"device_id": str(device.device_id)})
    assert (made.status, set(made.body)) == (200, {"challenge", "expires_in_s"})
    challenge = base64.b64decode(made.body["challenge"], validate=True)
    assert (len(challenge), made.body["expires_in_s"]) == (32, 60)
    signature = sign(device.signing_key, Purpose.DEVICE_LOGIN, ORIGIN, challenge, str(device.device_id))
    body = {"device_id": str(device.device_id), "challenge": b64(challenge), "signature": b64(signature)}
    answer = await device.rest("POST", "/auth/token", body)
    assert (answer.status, set(answer.body), answer.body["expires_in_s"]) == (
        200,
        {"access_token", "expires_in_s"},
        600,
    )
    again = await device.rest("POST", "/auth/token", body)
    assert (again.status, again.code) == (401, "login_refused")


async def test_a_step_up_is_a_challenge_and_a_confirmation(node):
    device, host = await node.couple()
    act = {"purpose": "open", "host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
    made = await device.rest("POST", "/step-up/challenges", act)
    assert (made.status, set(made.body)) == (201, {"challenge", "expires_in_s"})
    challenge = base64.b64decode(made.body["challenge"])
    wrong = await device.rest("POST", "/step-up", {"challenge": b64(challenge), "signature": b64(bytes(64))})
    assert (wrong.status, wrong.code) == (401, "step_up_refused")
    fields = (challenge, str(device.device_id), "open", str(host.host_id), "shell", "alex-shell")
    signature = sign(device.signing_key, Purpose.DEVICE_STEP_UP, ORIGIN, *fields)
    confirmed = await device.rest("POST", "/step-up", {"challenge": b64(challenge), "signature": b64(signature)})
    assert (confirmed.status, set(confirmed.body)) == (201, {"step_up_id", "expires_in_s"})
    assert UUID(confirmed.body["step_up_id"]).version == 7
    unknown = await device.rest("POST", "/step-up/challenges", act | {"host_id": NOBODY})
    assert (unknown.status, unknown.code) == (404, "host_unknown")
    incomplete = await device.rest("POST", "/step-up/challenges", act | {"purpose": "manage_host"})
    assert (incomplete.status, incomplete.code) == (422, "step_up_invalid")
    operators = await device.rest("POST", "/step-up/challenges", {"purpose": "manage_relay"})
    assert (operators.status, operators.code) == (403, "operator_required")


@pytest.mark.parametrize("path", ["/step-up/challenges", "/step-up"])
@pytest.mark.parametrize("header", [None, "Bearer", "Bearer x", "Basic dXNlcjpwYXNz"])
async def test_a_step_up_needs_an_access_token(node, path, header):
    headers = {} if header is None else {"Authorization": header}
    async with httpx.AsyncClient(trust_env=False) as rest:
        answer = await rest.post(f"{node.nodes[0].url}/api/v1{path}", json={}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "token_invalid")
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/auth/token", {"device_id": NOBODY, "challenge": b64(bytes(32)), "signature": b64(bytes(63))}),
        ("/auth/token", {"device_id": NOBODY, "challenge": b64(bytes(31)), "signature": b64(bytes(64))}),
        ("/auth/token", {"device_id": NOBODY, "challenge": "not base64", "signature": b64(bytes(64))}),
        ("/auth/invites/redeem", {"code": ""}),
        ("/step-up/challenges", {"purpose": "login", "host_id": NOBODY, "profile": "a", "session_user": "b"}),
    ],
)
async def test_bodies_are_strict(device, path, body):
    answer = await device.rest("POST", path, body)
    assert (answer.status, answer.code) == (400, "body_invalid")


async def test_the_keys_are_published_for_everybody(node):
    async with httpx.AsyncClient(trust_env=False) as rest:
        answer = await rest.get(f"{node.nodes[0].url}/.well-known/jwks.json")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "max-age=60"
    (key,) = answer.json()["keys"]
    assert (key["kty"], key["crv"], "d" in key) == ("OKP", "Ed25519", False)


async def test_without_the_database_a_caller_is_told_to_come_again(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1, database={"retry_after": "3s"}) as one:
        device, _ = await one.couple()
        async with one.outage():
            for method, path, body in (
                ("POST", "/auth/challenge", {"device_id": NOBODY}),
                ("GET", "/hosts", None),
                ("GET", "/terminal/sessions", None),
            ):
                answer = await device.rest(method, path, body)
                assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "unavailable", "3")
