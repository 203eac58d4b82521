"""REST of a device that another one lets in, on a real node: shapes, and how each refusal looks."""

import asyncio

import pytest

from bothy_kit.cluster import ORIGIN, cluster
from bothy_kit.fake_device import FakeDevice, b64
from bothy_wire.signing import Purpose, fingerprint, sign

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOBODY = "0199aaaa-0000-7000-8000-00000000000a"


def asking(device, name="laptop", *, origin=ORIGIN):
    keys = device.signing_key.public_key().public_bytes_raw(), device.channel_key.public_key().public_bytes_raw()
    signature = sign(device.signing_key, Purpose.DEVICE_ASK, origin, *keys, name)
    body = {"name": name, "signing_key": keys[0], "channel_key": keys[1], "signature": signature}
    return {field: value if isinstance(value, str) else b64(value) for field, value in body.items()}


async def begun(device):
    answer = await device.rest("POST", "/auth/device-logins", asking(device))
    assert (answer.status, set(answer.body)) == (201, {"device_code", "user_code", "expires_in_s", "interval_s"})
    return answer.body


async def poll(device, made):
    return await device.rest("POST", "/auth/device-logins/poll", {"device_code": made["device_code"]})


async def find(person, made):
    return await person.rest("POST", "/device-logins/find", {"user_code": made["user_code"]})


async def test_a_device_is_let_in_and_signs_in_with_its_key(node):
    person, _ = await node.couple()
    async with FakeDevice(ORIGIN, node.nodes[0].url) as new:
        made = await begun(new)
        waiting = await poll(new, made)
        assert (waiting.status, waiting.body["state"], waiting.body["device_id"]) == (200, "waiting", None)
        found = await find(person, made)
        shown = fingerprint(new.channel_key.public_key().public_bytes_raw())
        assert (found.status, found.body["name"], found.body["fingerprint"]) == (200, "laptop", shown)
        path = f"/device-logins/{found.body['device_login_id']}/approve"
        unconfirmed = await person.rest("POST", path, {"step_up_id": NOBODY})
        assert (unconfirmed.status, unconfirmed.code) == (401, "step_up_required")
        approved = await person.rest("POST", path, {"step_up_id": await person.step_up("manage_account")})
        assert (approved.status, set(approved.body)) == (200, {"device_id"})
        told = await poll(new, made)
        assert (told.status, told.body["state"], told.body["device_id"]) == (
            200,
            "approved",
            approved.body["device_id"],
        )
        new.device_id = told.body["device_id"]
        assert (await new.login()).status == 200
        again = await new.rest("POST", "/auth/device-logins", asking(new))
        assert (again.status, again.code) == (409, "device_exists")


async def test_a_device_that_is_sent_away_is_told_so(node):
    person, _ = await node.couple()
    async with FakeDevice(ORIGIN, node.nodes[0].url) as new:
        made = await begun(new)
        login_id = (await find(person, made)).body["device_login_id"]
        denied = await person.rest("POST", f"/device-logins/{login_id}/deny", {})
        assert (denied.status, denied.body) == (200, {"device_login_id": login_id})
        told = await poll(new, made)
        assert (told.status, told.code) == (403, "device_login_denied")
        for act, body in (("approve", {"step_up_id": NOBODY}), ("deny", {})):
            late = await person.rest("POST", f"/device-logins/{login_id}/{act}", body)
            assert (late.status, late.code) == (404, "user_code_unknown")


async def test_who_asks_too_often_is_told_when_to_ask_again(node):
    async with FakeDevice(ORIGIN, node.nodes[0].url) as new:
        made = await begun(new)
        answers = await asyncio.gather(*(poll(new, made) for _ in range(3)))
        assert sorted(each.status for each in answers) == [200, 429, 429]
        late = max(answers, key=lambda each: each.status)
        assert (late.code, late.headers["retry-after"]) == ("slow_down", "5")


async def test_asking_is_refused_where_the_proof_or_the_name_is_wrong(node):
    async with FakeDevice(ORIGIN, node.nodes[0].url) as new:
        other = await new.rest("POST", "/auth/device-logins", asking(new, origin="https://other.example.com"))
        assert (other.status, other.code) == (401, "device_login_invalid")
        long = await new.rest("POST", "/auth/device-logins", asking(new, "\u00e9" * 33))
        assert (long.status, long.code) == (422, "name_invalid")
        unknown = await new.rest("POST", "/auth/device-logins/poll", {"device_code": "7QK3M-0VXWB"})
        assert (unknown.status, unknown.code) == (401, "device_login_invalid")


async def test_no_more_devices_wait_than_may(node):
    most = 10_000
    await node.sql(
        "INSERT INTO device_logins (id, device_code_hash, user_code_hash, name, signing_key, channel_key, expires_at)"
        " SELECT gen_random_uuid(), sha256(('a' || n)::bytea), sha256(('b' || n)::bytea), 'x',"
        " sha256(('c' || n)::bytea), sha256(('d' || n)::bytea), now() + interval '1 minute'"
        " FROM generate_series(1, %s) n",
        most,
    )
    try:
        async with FakeDevice(ORIGIN, node.nodes[0].url) as new:
            refused = await new.rest("POST", "/auth/device-logins", asking(new))
            assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "device_login_limit", "60")
    finally:
        await node.sql("DELETE FROM device_logins WHERE name = 'x'")


async def test_one_network_takes_a_share_of_the_room_only(database_url, tmp_path):
    async with (
        cluster(database_url, tmp_path, nodes=1, identity={"attempt_rate": "2 per hour"}) as one,
        FakeDevice(ORIGIN, one.nodes[0].url) as new,
    ):
        answers = [await new.rest("POST", "/auth/device-logins", asking(new)) for _ in range(3)]
    assert [each.status for each in answers] == [201, 201, 429]
    assert answers[-1].code == "rate_limited"


async def test_user_codes_cannot_be_tried_without_end(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1, identity={"attempt_rate": "3 per hour"}) as one:
        person = await one.device()
        codes = [(await find(person, {"user_code": f"AAAA-AA{each:02}"})).code for each in range(4)]
    assert codes == ["user_code_unknown"] * 3 + ["rate_limited"]
