"""REST of terminal sessions on a real node: shapes, and how a refusal looks."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import httpx2 as httpx
import pytest
import pytest_asyncio

from bothy_kit.fake_device import b64
from bothy_wire.frames import HostSessionOpen, HostSessionRecorded
from bothy_wire.limits import data_path, stream_path

pytestmark = pytest.mark.asyncio(loop_scope="module")
NODE_SETTINGS = {"terminal": {"max_sessions_per_person": 3}}
NOBODY = "0199aaaa-0000-7000-8000-00000000000a"


@pytest_asyncio.fixture(loop_scope="module")
async def couple(node):
    """A device and its connected host."""
    return await connected(node)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def known(node):
    """The same for tests that leave nothing behind."""
    return await connected(node)


async def connected(node):
    device, host = await node.couple()
    await host.connect()
    return device, host


async def test_an_open_answers_what_a_device_needs_to_dial(couple):
    device, host = couple
    answer = await device.try_open(host.host_id)
    assert answer.status == 201
    opened = answer.body
    session_id = UUID(opened.pop("session_id"))
    assert session_id.version == 7
    assert opened.pop("stream_token").count(".") == 2
    assert opened == {
        "host_id": str(host.host_id),
        "profile": "shell",
        "session_user": "alex-shell",
        "stream_path": stream_path(session_id),
        "host_channel_key": b64(host.channel_key.public_key().public_bytes_raw()),
        "expires_in_s": 60,
        "attach_seq": 1,
    }
    assert (await host.control.expect(HostSessionOpen)).session_id == session_id


async def test_an_attach_answers_the_same_with_the_next_number(couple):
    device, host = couple
    opened = (await device.try_open(host.host_id)).body
    answer = await device.rest("POST", f"/terminal/sessions/{opened['session_id']}/attach", {})
    assert (answer.status, answer.body.keys()) == (200, opened.keys())
    assert answer.body["attach_seq"] == 2
    assert {name: answer.body[name] for name in ("session_id", "stream_path", "host_channel_key")} == {
        name: opened[name] for name in ("session_id", "stream_path", "host_channel_key")
    }


async def test_a_session_is_told_as_the_contract_says(couple):
    device, host = couple
    stream = await device.open(host.host_id)
    told = (await device.rest("GET", f"/terminal/sessions/{stream.session_id}")).body
    opened_at, expires_at = (datetime.fromisoformat(told.pop(each)) for each in ("opened_at", "expires_at"))
    assert opened_at.tzinfo is not None
    assert expires_at - opened_at == timedelta(hours=24)
    assert abs(opened_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert told.pop("host_name").startswith("lab-")
    assert told.pop("person_name").startswith("Robin-")
    assert UUID(told.pop("person_id")).version == 7
    assert told == {
        "session_id": str(stream.session_id),
        "host_id": str(host.host_id),
        "device_id": str(device.device_id),
        "device_name": "laptop",
        "profile": "shell",
        "session_user": "alex-shell",
        "state": "opening",
        "close_reason": None,
        "close_detail": None,
        "started_at": None,
        "detached_at": None,
        "closed_at": None,
        "bytes_in": 0,
        "bytes_out": 0,
    }
    await host.ended(stream.session_id, "spawn_failed")
    await host.control.expect(HostSessionRecorded)
    told = await device.state(stream.session_id)
    assert (told["state"], told["close_reason"], told["close_detail"]) == ("closed", "open_failed", "spawn_failed")
    assert told["closed_at"] is not None


async def test_a_list_leaves_out_what_is_closed_unless_it_is_asked_for(couple):
    device, host = couple
    live, closed = await device.open(host.host_id), await device.open(host.host_id)
    answer = await device.rest("POST", f"/terminal/sessions/{closed.session_id}/close", {})
    assert (answer.status, answer.body["state"], answer.body["close_reason"]) == (200, "closed", "client_closed")

    async def listed(query):
        answer = await device.rest("GET", f"/terminal/sessions{query}")
        return [UUID(each["session_id"]) for each in answer.body["sessions"]]

    assert await listed("") == await listed("?all=false") == [live.session_id]
    assert await listed("?all=true") == [closed.session_id, live.session_id]
    for query in ("?all=yes", "?all=", "?all=True"):
        refused = await device.rest("GET", f"/terminal/sessions{query}")
        assert (refused.status, refused.code) == (400, "query_invalid")


async def test_a_list_comes_in_pages(couple):
    device, host = couple
    older, newer = await device.open(host.host_id), await device.open(host.host_id)
    for path in ("/terminal/sessions", f"/hosts/{host.host_id}/sessions"):
        first = (await device.rest("GET", f"{path}?limit=1")).body
        second = (await device.rest("GET", f"{path}?limit=1&before={first['before']}")).body
        last = (await device.rest("GET", f"{path}?limit=2&before={second['before']}")).body
        ids = [[UUID(each["session_id"]) for each in page["sessions"]] for page in (first, second, last)]
        assert ids == [[newer.session_id], [older.session_id], []]
        assert last["before"] is None
        for query in ("?limit=0", "?limit=1001", "?before=x"):
            refused = await device.rest("GET", f"{path}{query}")
            assert (refused.status, refused.code) == (400, "query_invalid")


async def test_an_operator_sees_everybodys_sessions_and_may_do_nothing_with_them(node, couple):
    device, host = couple
    stream = await device.open(host.host_id)
    refused = await device.rest("GET", "/terminal/sessions?everyone=true")
    assert (refused.status, refused.code) == (403, "operator_required")
    operator = await node.operator(f"Kim-{stream.session_id}")
    assert (await operator.rest("GET", "/terminal/sessions")).body == {"sessions": [], "before": None}
    listed = (await operator.rest("GET", "/terminal/sessions?everyone=true&limit=1")).body["sessions"]
    assert listed == [(await device.rest("GET", f"/terminal/sessions/{stream.session_id}")).body]
    for path in ("attach", "close", "terminate"):
        answer = await operator.rest("POST", f"/terminal/sessions/{stream.session_id}/{path}", {})
        assert (answer.status, answer.code) == (404, "session_unknown")


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"host_id": NOBODY}, 404, "host_unknown"),
        ({"profile": "nothing"}, 422, "profile_unknown"),
        ({"session_user": "root"}, 422, "user_unknown"),
        ({}, 401, "step_up_required"),
        ({"profile": ""}, 400, "body_invalid"),
        ({"profile": "x" * 65}, 400, "body_invalid"),
        ({"session_user": "alex\u0000"}, 400, "body_invalid"),
        ({"host_id": "x"}, 400, "body_invalid"),
        ({"step_up_id": None}, 400, "body_invalid"),
        ({"size": 80}, 400, "body_invalid"),
    ],
)
async def test_an_open_that_is_refused_says_why(known, changed, status, code):
    device, host = known
    act = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell", "step_up_id": NOBODY}
    answer = await device.rest("POST", "/terminal/sessions", act | changed)
    assert (answer.status, answer.code) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


async def test_too_many_sessions_are_429(couple):
    device, host = couple
    for _ in range(3):
        await device.open(host.host_id)
    refused = await device.try_open(host.host_id)
    assert (refused.status, refused.code) == (429, "session_limit")


@pytest.mark.parametrize("session_id", [NOBODY, NOBODY.upper(), "x"])
async def test_a_session_that_is_not_there_is_unknown_on_every_path(known, session_id):
    device, _ = known
    for method, path, body in (
        ("GET", "", None),
        ("POST", "/attach", {}),
        ("POST", "/close", {}),
        ("POST", "/terminate", {}),
    ):
        answer = await device.rest(method, f"/terminal/sessions/{session_id}{path}", body)
        assert (answer.status, answer.code) == (404, "session_unknown")


async def test_an_attach_to_a_session_that_ended_is_409(couple):
    device, host = couple
    stream = await device.open(host.host_id)
    await device.rest("POST", f"/terminal/sessions/{stream.session_id}/close", {})
    answer = await device.rest("POST", f"/terminal/sessions/{stream.session_id}/attach", {})
    assert (answer.status, answer.code) == (409, "session_closed")
    assert "client_closed" in answer.body["detail"]


async def test_an_attach_while_the_host_is_away_is_409(node):
    device, host = await node.couple()
    control = await host.connect()
    stream = await device.open(host.host_id)
    await control.close()
    answer = await device.rest("POST", f"/terminal/sessions/{stream.session_id}/attach", {})
    assert (answer.status, answer.code) == (409, "host_unavailable")


async def test_a_guest_works_as_whom_the_grant_names_and_as_nobody_else(node, couple):
    _, host = couple
    guest, _ = await node.couple()
    grant = (
        "DELETE FROM host_grants WHERE host_id = %s AND person_id = (SELECT person_id FROM devices WHERE id = %s)",
        (
            'INSERT INTO host_grants (host_id, person_id, "right", "session_user")'
            " SELECT %s, person_id, 'terminal', %s FROM devices WHERE id = %s"
        ),
    )
    await node.sql(grant[1], host.host_id, "alex-shell", guest.device_id)
    stream = await guest.open(host.host_id)
    await node.sql(grant[0], host.host_id, guest.device_id)
    await node.sql(grant[1], host.host_id, "robin-shell", guest.device_id)
    attached = await guest.rest("POST", f"/terminal/sessions/{stream.session_id}/attach", {})
    opened = await guest.try_open(host.host_id)
    for answer in (attached, opened):
        assert (answer.status, answer.code) == (403, "right_missing")
        assert "alex-shell" in answer.body["detail"]


async def test_an_attach_to_a_host_that_is_not_active_is_409(node, couple):
    device, host = couple
    stream = await device.open(host.host_id)
    await node.sql("UPDATE hosts SET state = 'disabled' WHERE id = %s", host.host_id)
    answer = await device.rest("POST", f"/terminal/sessions/{stream.session_id}/attach", {})
    assert (answer.status, answer.code) == (409, "host_not_active")


async def test_another_device_confirms_and_takes_a_session_over(node):
    name = f"Robin-{uuid4().hex[:8]}"
    first = await node.device(name)
    second = await node.another_device(name)
    host = await node.host(f"lab-{uuid4().hex[:8]}", name)
    await host.connect()
    stream = await first.open(host.host_id)
    path = f"/terminal/sessions/{stream.session_id}/attach"
    unconfirmed = await second.rest("POST", path, {})
    assert (unconfirmed.status, unconfirmed.code) == (401, "step_up_required")
    step_up_id = await second.step_up("attach", host.host_id, "shell", "alex-shell")
    taken = await second.rest("POST", path, {"step_up_id": step_up_id})
    assert (taken.status, taken.body["attach_seq"]) == (200, 2)


async def test_a_close_takes_no_fields(known):
    device, _ = known
    answer = await device.rest("POST", f"/terminal/sessions/{NOBODY}/close", {"reason": "idle"})
    assert (answer.status, answer.code) == (400, "body_invalid")


async def test_an_owner_lists_and_terminates_the_sessions_on_a_host(couple):
    device, host = couple
    stream = await device.open(host.host_id)
    path = f"/hosts/{host.host_id}/sessions"
    (listed,) = (await device.rest("GET", path)).body["sessions"]
    assert listed["session_id"] == str(stream.session_id)
    answer = await device.rest("POST", f"/terminal/sessions/{stream.session_id}/terminate", {})
    assert (answer.status, answer.body["close_reason"]) == (200, "closed_by_owner")
    assert (await device.rest("GET", path)).body["sessions"] == []
    (ended,) = (await device.rest("GET", f"{path}?all=true")).body["sessions"]
    assert ended == answer.body
    assert (await device.rest("GET", f"{path}?all=1")).code == "query_invalid"
    assert (await device.rest("GET", f"/hosts/{NOBODY}/sessions")).code == "host_unknown"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/terminal/sessions"),
        ("POST", "/terminal/sessions"),
        ("GET", f"/terminal/sessions/{NOBODY}"),
        ("POST", f"/terminal/sessions/{NOBODY}/attach"),
        ("POST", f"/terminal/sessions/{NOBODY}/close"),
        ("POST", f"/terminal/sessions/{NOBODY}/terminate"),
        ("GET", f"/hosts/{NOBODY}/sessions"),
    ],
)
async def test_every_path_needs_an_access_token(node, method, path):
    async with httpx.AsyncClient(trust_env=False) as rest:
        answer = await rest.request(method, f"{node.nodes[0].url}/api/v1{path}")
    assert (answer.status_code, answer.json()["code"]) == (401, "token_invalid")


async def test_both_paths_of_a_session_name_their_node(node):
    """So anyone can prove that an edge sends both to one node."""
    async with httpx.AsyncClient(trust_env=False) as rest:
        for path in (stream_path(NOBODY), data_path(NOBODY)):
            answer = await rest.get(node.nodes[0].url + path)
            assert (answer.status_code, answer.json()["code"]) == (426, "upgrade_required")
            assert answer.headers["bothy-node"] == str(node.nodes[0].node.id)
            assert answer.headers["upgrade"] == "websocket"
