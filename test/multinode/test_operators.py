"""To operate the relay gives no right on a terminal: an operator does all that there is to do, and then opens nothing."""

import importlib
import itertools
import pkgutil
from uuid import UUID

import pytest

import bothy_server
from bothy_kit.cluster import cluster
from bothy_kit.fake_device import FakeDevice
from bothy_server.platform.operations import operations_of
from bothy_wire.frames import HostSessionOpen

NOTHING = str(UUID(int=1))
STREAMS = {("GET", "/api/v1/events")}
"""They have no end, and tell ids."""
WHERE = {"profile": "shell", "session_user": "alex-shell"}


def operations():
    """Every operation that a signed-in person may call, and that ends, as method and path."""
    for module in pkgutil.walk_packages(bothy_server.__path__, "bothy_server."):
        if ".adapters.http." in module.name:
            for kind in vars(importlib.import_module(module.name)).values():
                if isinstance(kind, type) and kind.__module__ == module.name:
                    rows = (row for row, _ in operations_of(kind) if row.signed_in and not row.streams)
                    yield from ((row.method, row.path) for row in rows)


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2) as running:
        yield running


@pytest.fixture
async def scene(two):
    """An owner with a session on their host, and an operator who has nothing to do with either."""
    owner, host = await two.device("Robin"), await two.host(owner="Robin")
    control = await host.connect(two.nodes[1].url)
    stream = await owner.open(host.host_id)
    await control.expect(HostSessionOpen)
    return await two.operator("Kim"), owner, host, stream


def acts(host_id, session_id, owner_id, operator_id):
    """What to try, by operation: what stands in its path, the body, and the purpose of its confirmation."""
    at, of_owner, session = {"host_id": host_id}, {"person_id": owner_id}, {"session_id": session_id}
    opening = {"host_id": host_id} | WHERE
    relay, host, account = "manage_relay", "manage_host", "manage_account"
    tried = {
        ("GET", "/hosts"): ({}, None, None),
        ("GET", "/hosts/{host_id}"): (at, None, None),
        ("GET", "/hosts/{host_id}/owners"): (at, None, None),
        ("GET", "/hosts/{host_id}/grants"): (at, None, None),
        ("GET", "/hosts/{host_id}/sessions"): (at, None, None),
        ("POST", "/hosts"): ({}, {"name": "mine"}, relay),
        ("POST", "/hosts/{host_id}/owners"): (at, {"person": operator_id}, host),
        ("POST", "/hosts/{host_id}/owners/remove"): (at, {"person": owner_id}, host),
        ("POST", "/hosts/{host_id}/grants"): (at, {"person": operator_id, "session_user": "alex-shell"}, host),
        ("POST", "/hosts/{host_id}/grants/revoke"): (at, {"person": owner_id}, host),
        ("POST", "/hosts/{host_id}/rename"): (at, {"name": "another"}, host),
        ("GET", "/terminal/sessions"): ({}, None, None),
        ("GET", "/terminal/sessions/{session_id}"): (session, None, None),
        ("POST", "/terminal/sessions"): ({}, opening | {"step_up_id": NOTHING}, None),
        ("POST", "/terminal/sessions/{session_id}/attach"): (session, {"step_up_id": NOTHING}, None),
        ("POST", "/terminal/sessions/{session_id}/close"): (session, {}, None),
        ("POST", "/terminal/sessions/{session_id}/terminate"): (session, {}, None),
        ("POST", "/step-up/challenges"): ({}, {"purpose": "attach"} | opening, None),
        ("POST", "/step-up"): ({}, {"challenge": "A" * 43 + "=", "signature": "A" * 86 + "=="}, None),
        ("GET", "/audit"): ({}, None, None),
        ("GET", "/audit/mine"): ({}, None, None),
        ("GET", "/persons"): ({}, None, None),
        ("POST", "/persons"): ({}, {"name": "Sam", "is_operator": True}, relay),
        ("POST", "/persons/{person_id}/invites"): (of_owner, {}, relay),
        ("GET", "/persons/{person_id}/devices"): (of_owner, None, None),
        ("GET", "/me"): ({}, None, None),
        ("GET", "/devices"): ({}, None, None),
        ("POST", "/devices/invites"): ({}, {}, account),
        ("POST", "/devices/{device_id}/revoke"): ({"device_id": NOTHING}, {}, account),
        ("POST", "/device-logins/find"): ({}, {"user_code": "BCDF-GHJK"}, None),
        ("POST", "/device-logins/{device_login_id}/approve"): ({"device_login_id": NOTHING}, {}, account),
        ("POST", "/device-logins/{device_login_id}/deny"): ({"device_login_id": NOTHING}, {}, None),
        ("POST", "/passkeys/challenge"): ({}, {}, None),
        ("GET", "/passkeys"): ({}, None, None),
        ("POST", "/passkeys"): ({}, {"name": "key", "credential": {}}, account),
        ("POST", "/passkeys/{passkey_id}/remove"): ({"passkey_id": NOTHING}, {}, account),
        ("GET", "/nodes"): ({}, None, None),
        # What ends things comes last.
        ("POST", "/hosts/{host_id}/confirm"): (at, {"fingerprint": "SHA256:x"}, host),
        ("POST", "/hosts/{host_id}/state"): (at, {"state": "disabled"}, host),
        ("POST", "/hosts/{host_id}/pairing-codes"): (at, {}, host),
        ("POST", "/persons/{person_id}/state"): (of_owner, {"state": "disabled"}, relay),
        ("POST", "/nodes/{node_id}/drain"): ({"node_id": NOTHING}, {}, relay),
        ("POST", "/auth/logout"): ({}, {}, None),
    }
    return {(method, f"/api/v1{path}"): act for (method, path), act in tried.items()}


async def opens_nothing(two, device, host_id, session_id, nodes=None):
    """No node lets this device near the host's terminals, and it stands nowhere."""
    for node in nodes or two.nodes:
        challenge = await device.rest("POST", "/step-up/challenges", {"purpose": "open", "host_id": host_id} | WHERE)
        wanted = {"host_id": host_id, "step_up_id": NOTHING} | WHERE
        answers = [
            challenge,
            await device.rest("POST", "/terminal/sessions", wanted, url=node.url),
            await device.rest("POST", f"/terminal/sessions/{session_id}/attach", {"step_up_id": None}, url=node.url),
            await device.rest("GET", f"/terminal/sessions/{session_id}", url=node.url),
            await device.rest("GET", f"/hosts/{host_id}/sessions", url=node.url),
        ]
        refused = {(each.status, each.code) for each in answers}
        assert refused <= {(404, "host_unknown"), (404, "session_unknown"), (401, "token_invalid")}
    rights = await two.sql(
        "SELECT 'owner' FROM host_owners o JOIN devices d USING (person_id) WHERE d.id = %s AND host_id = %s"
        " UNION ALL SELECT 'grant' FROM host_grants g JOIN devices d USING (person_id) WHERE d.id = %s AND host_id = %s",
        *(device.device_id, host_id) * 2,
    )
    assert rights == []


async def test_an_operator_who_does_everything_gains_no_terminal(two, scene):
    operator, owner, host, stream = scene
    ((owner_id,),) = await two.sql("SELECT person_id FROM devices WHERE id = %s", owner.device_id)
    ((operator_id,),) = await two.sql("SELECT person_id FROM devices WHERE id = %s", operator.device_id)
    host_id, session_id = str(host.host_id), str(stream.session_id)
    tried = acts(host_id, session_id, str(owner_id), str(operator_id))
    assert set(operations()) - set(tried) - STREAMS == set(), "a new operation has to be tried, too"

    codes, nodes = [], itertools.cycle(two.nodes)
    for (method, path), (named, body, purpose) in tried.items():
        if purpose is not None:
            body["step_up_id"] = await operator.step_up(purpose, *([host_id] if purpose == "manage_host" else []))
        answer = await operator.rest(method, path.removeprefix("/api/v1").format(**named), body)
        assert answer.status < 500, path
        codes += [
            value for name, value in answer.body.items() if name in {"code", "invite"} and value and answer.status < 300
        ]
        await opens_nothing(two, operator, host_id, session_id, [next(nodes)])

    became = 0
    for code in codes:
        async with FakeDevice(operator.origin, operator.url) as another:
            if (await another.redeem(code)).status == 201:
                became += (await another.login()).status == 200
                await opens_nothing(two, another, host_id, session_id)
    assert (len(codes), became) == (3, 2), "of the host a pairing code, and invites for Sam and for themselves"


async def test_an_invite_that_an_operator_kept_is_worth_nothing_once_its_person_works(two, scene):
    operator, owner, host, _ = scene
    body = {"name": "Sam", "is_operator": False, "step_up_id": await operator.step_up("manage_relay")}
    made = await operator.rest("POST", "/persons", body)
    more = {"step_up_id": await operator.step_up("manage_relay")}
    kept = await operator.rest("POST", f"/persons/{made.body['person_id']}/invites", more)
    assert (made.status, kept.status) == (201, 201)

    wanted = {"person": "Sam", "session_user": "alex-shell"}
    early = await owner.manage("/grants", wanted, host_id=host.host_id)
    assert (early.status, early.code) == (409, "person_without_device"), "whoever redeems first would have it"
    async with FakeDevice(owner.origin, owner.url) as sam, FakeDevice(owner.origin, owner.url) as impostor:
        assert (await sam.redeem(made.body["invite"])).status == 201
        assert (await owner.manage("/grants", wanted, host_id=host.host_id)).status == 200
        refused = await impostor.redeem(kept.body["invite"])
        assert (refused.status, refused.code) == (401, "invite_invalid")
    more = {"step_up_id": await operator.step_up("manage_relay")}
    late = await operator.rest("POST", f"/persons/{made.body['person_id']}/invites", more)
    assert (late.status, late.code) == (409, "person_has_device")


async def test_who_operates_and_owns_is_an_owner_like_others(two, scene):
    operator, owner, host, _ = scene
    assert (await owner.manage("/owners", {"person": "Kim"}, host_id=host.host_id)).status == 200
    assert (await operator.try_open(host.host_id)).status == 201
    removed = await operator.manage("/owners/remove", {"person": "Robin"}, host_id=host.host_id)
    assert removed.status == 200
    assert (await owner.rest("GET", f"/hosts/{host.host_id}")).code == "host_unknown"
