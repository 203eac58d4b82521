"""Bad input gets a clear error or close code, nothing is written and nothing hangs."""

import json
from uuid import uuid4

import psycopg
import pytest

from bothy_kit.cluster import ORIGIN, cluster
from bothy_kit.fake_device import FakeDevice
from bothy_kit.fake_host import ControlSocket, FakeHost
from bothy_kit.sockets import FakeSide
from bothy_wire.frames import (
    HostHello,
    HostIdentified,
    HostSessionClose,
    HostSessionOpen,
    ReportedSession,
    SidePaired,
    StreamHello,
    encode,
)
from bothy_wire.limits import (
    CONTROL_PATH,
    DATA_SUBPROTOCOL,
    STREAM_SUBPROTOCOL,
    data_path,
    stream_path,
)

NOWHERE = "0199aaaa-0000-7000-8000-00000000000a"


@pytest.fixture
async def one(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1) as running:
        yield running


@pytest.fixture
async def open_session(one):
    """A device, its host with a control connection, and a session in ``opening``."""
    device = await one.device()
    host = await one.host()
    control = await host.connect()
    stream = await device.open(host.host_id)
    await control.expect(HostSessionOpen)
    return device, host, stream


def count(database_url, table):
    with psycopg.connect(database_url) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


# ---- REST -----------------------------------------------------------------------------------------------------------


async def test_an_invite_works_once(one, database_url):
    invite = (await one.admin.people.add("Sam", is_operator=False)).code
    async with FakeDevice(ORIGIN, one.nodes[0].url) as first, FakeDevice(ORIGIN, one.nodes[0].url) as second:
        assert (await first.redeem(invite.lower().replace("-", " "))).status == 201
        again = await second.redeem(invite)
        wrong = await second.redeem("00000-00000-00000-00000-0000")
    assert (again.status, again.code) == (wrong.status, wrong.code) == (401, "invite_invalid")
    assert again.body["detail"] == wrong.body["detail"]
    assert count(database_url, "devices") == 1


async def test_a_signature_for_another_server_redeems_nothing(one, database_url):
    invite = (await one.admin.people.add("Sam", is_operator=False)).code
    async with FakeDevice("http://other.example.com", one.nodes[0].url) as device:
        assert (await device.redeem(invite)).code == "invite_invalid"
    assert count(database_url, "devices") == 0


async def test_a_pairing_code_works_once(one):
    await one.device()
    host = await one.host()
    code = await one.code(host.host_id)
    assert (await host.pair(code)).status_code == 201
    for bad in (code, "00000-00000-00000-00000-0000"):
        async with FakeHost(ORIGIN, one.nodes[0].url) as stranger:
            answer = await stranger.pair(bad)
        assert (answer.status_code, answer.json()["code"]) == (401, "pairing_code_invalid")


async def test_a_revoked_device_can_do_nothing(one, database_url):
    device = await one.device()
    host = await one.host()
    await host.connect()
    stream = await device.open(host.host_id)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE devices SET revoked_at = now()")
    assert (await device.rest("GET", "/hosts")).code == "token_invalid"
    assert (await device.login()).code == "device_revoked"
    side = await device.identify(stream)
    assert (await side.closed()).code == 4101


async def test_a_login_challenge_is_used_once(one):
    device = await one.device()
    made = await device.rest("POST", "/auth/challenge", {"device_id": str(device.device_id)})
    unknown = await device.rest("POST", "/auth/challenge", {"device_id": NOWHERE})
    assert made.body.keys() == unknown.body.keys()


async def test_an_unknown_host_and_a_foreign_host_are_one_answer(one):
    device = await one.device()
    stranger = await one.device("Sam")
    host = await one.host()
    await host.connect()
    body = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell", "step_up_id": NOWHERE}
    unknown = await device.rest("POST", "/terminal/sessions", body | {"host_id": NOWHERE})
    foreign = await stranger.rest("POST", "/terminal/sessions", body)
    assert (unknown.status, unknown.code) == (404, "host_unknown")
    assert unknown.body == foreign.body
    assert (await device.rest("GET", f"/hosts/{NOWHERE}")).code == "host_unknown"
    assert (await stranger.rest("GET", f"/hosts/{host.host_id}")).code == "host_unknown"


async def test_a_host_that_is_offline_is_409_and_spends_no_step_up(one, database_url):
    device = await one.device()
    host = await one.host()
    host.profiles = {"shell": ["alex-shell"]}
    answer = await device.try_open(host.host_id)
    assert (answer.status, answer.code) == (409, "host_unavailable")
    assert count(database_url, "terminal_sessions") == 0
    assert count(database_url, "step_ups WHERE consumed_at IS NOT NULL") == 0


async def test_a_profile_or_user_that_the_host_does_not_offer(one):
    device = await one.device()
    host = await one.host()
    await host.connect()
    assert (await device.try_open(host.host_id, profile="nothing")).code == "profile_unknown"
    assert (await device.try_open(host.host_id, session_user="root")).code == "user_unknown"


async def test_a_step_up_opens_one_session_and_only_what_it_names(one, database_url):
    device = await one.device()
    host = await one.host()
    host.profiles = {"shell": ["alex-shell"], "other": ["alex-shell"]}
    await host.connect()
    step_up_id = await device.step_up("open", host.host_id, "shell", "alex-shell")
    body = {"host_id": str(host.host_id), "profile": "other", "session_user": "alex-shell", "step_up_id": step_up_id}
    assert (await device.rest("POST", "/terminal/sessions", body)).code == "step_up_required"
    body["profile"] = "shell"
    assert (await device.rest("POST", "/terminal/sessions", body)).status == 201
    assert (await device.rest("POST", "/terminal/sessions", body)).code == "step_up_required"
    assert count(database_url, "terminal_sessions") == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"device_id": NOWHERE, "more": 1}, "body_invalid"),
        ({}, "body_invalid"),
        ({"device_id": NOWHERE.upper()}, "body_invalid"),
        ({"device_id": NOWHERE.replace("-", "")}, "body_invalid"),
        ({"device_id": None}, "body_invalid"),
        ({"device_id": "x" * 70_000}, "body_too_large"),
    ],
)
async def test_bodies_are_strict(one, body, code):
    device = await one.device()
    assert (await device.rest("POST", "/auth/challenge", body)).code == code


# ---- sockets --------------------------------------------------------------------------------------------------------


async def test_a_stream_token_is_bound_to_device_session_and_origin(one, open_session):
    device, host, stream = open_session
    other = await one.another_device("Robin")
    assert (await (await other.identify(stream)).closed()).code == 4101
    assert (await (await device.identify(stream, origin="http://other.example.com")).closed()).code == 4101
    second = await device.open(host.host_id)
    mixed = type(stream)(second.session_id, stream.token, b"", 1)
    assert (await (await device.identify(mixed)).closed()).code == 4101


async def test_a_host_key_that_is_not_the_rows_is_refused(one, open_session):
    _, host, stream = open_session
    impostor = FakeHost(ORIGIN, one.nodes[0].url)
    impostor.host_id, impostor.pairing_seq, impostor.join = host.host_id, host.pairing_seq, host.join
    assert (await (await impostor.identify()).closed()).code == 4101
    assert (await (await impostor.identify_data(stream.session_id)).closed()).code == 4101


async def test_a_join_value_of_nobody_is_refused(one):
    await one.device()
    host = await one.host()
    assert (await (await host.identify(join="7.x.AAAA")).closed()).code == 4101


async def test_a_join_value_that_was_passed_is_a_copy_when_somebody_answers(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1, terminal={"host_duplicate_probe_timeout": "5 s"}) as one:
        await one.device()
        host = await one.host()
        copy = host.copy()
        control = await host.connect()
        assert (await (await copy.identify()).closed()).code == 4112
        assert (await control.closed()).code == 4112


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ("{", 4105),
        ('{"type":"stream.identify"}', 4105),
        (json.dumps({"type": "stream.identify", "stream_token": "x", "signature": "AA==", "more": 1}), 4105),
        (b"\x00binary", 4105),
        ("x" * 17_000, 1009),
        ("x" * 70_000, 1009),
    ],
)
async def test_the_first_frame_of_a_stream_is_checked(open_session, first, code):
    device, _, stream = open_session
    side = await FakeSide.dial(f"{device.url}{stream_path(stream.session_id)}", STREAM_SUBPROTOCOL)
    await side.expect(StreamHello)
    await side.send(first)
    assert (await side.closed()).code == code


async def test_a_socket_that_says_nothing_is_closed(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1, wire={"identify_timeout": "50ms"}) as one:
        url = one.nodes[0].url
        side = await FakeSide.dial(f"{url}{data_path(NOWHERE)}", DATA_SUBPROTOCOL)
        control = await ControlSocket.dial(f"{url}{CONTROL_PATH}")
        assert (await side.closed()).code == 4104
        assert (await control.closed()).code == 4104


async def test_an_unknown_session_is_refused_like_a_foreign_one(one):
    await one.device()
    host = await one.host()
    assert (await (await host.identify_data(NOWHERE)).closed()).code == 4101


async def test_a_spelling_of_a_session_that_is_not_canonical_is_refused(one, open_session):
    _, host, stream = open_session
    for spelled in (str(stream.session_id).upper(), stream.session_id.hex, f"{{{stream.session_id}}}"):
        side = await FakeSide.dial(f"{host.url}{data_path(spelled)}", DATA_SUBPROTOCOL)
        assert (await side.closed()).code == 4101


async def test_another_web_page_opens_no_stream(open_session):
    device, _, stream = open_session
    url = f"{device.url}{stream_path(stream.session_id)}"
    side = await FakeSide.dial(url, STREAM_SUBPROTOCOL, origin="http://evil.example.com")
    assert (await side.closed()).code == 4101
    side = await FakeSide.dial(url, STREAM_SUBPROTOCOL, origin=ORIGIN)
    await side.expect(StreamHello)


async def test_a_socket_without_our_subprotocol_is_told_so(open_session):
    device, _, stream = open_session
    side = await FakeSide.dial(f"{device.url}{stream_path(stream.session_id)}", None)
    assert (await side.closed()).code == 4113


async def test_no_extension_is_negotiated(open_session):
    device, _, stream = open_session
    url = f"{device.url}{stream_path(stream.session_id)}"
    side = await FakeSide.dial(url, STREAM_SUBPROTOCOL, compression="deflate")
    await side.expect(StreamHello)
    assert side.socket.protocol.extensions == []


async def test_binary_before_the_pair_is_a_violation_and_takes_nobody_else_along(open_session):
    device, host, stream = open_session
    client = await device.dial(stream)
    await client.send(b"too early")
    assert (await client.closed()).code == 4105
    data = await host.dial(stream.session_id)
    client = await device.dial(stream)
    await client.expect(SidePaired)
    await data.expect(SidePaired)


async def test_text_in_a_pair_is_a_violation(open_session):
    device, host, stream = open_session
    client = await device.dial(stream)
    data = await host.dial(stream.session_id)
    await client.expect(SidePaired)
    await client.send('{"type":"side.ready"}')
    assert (await client.closed()).code == 4105
    del data


async def test_a_control_connection_is_checked_frame_by_frame(one):
    await one.device()
    host = await one.host()
    early = await host.identify()
    await early.expect(HostIdentified)
    await early.send(host.report())  # with the join value of before
    assert (await early.closed()).code == 4105
    broken = await host.identify()
    await broken.expect(HostIdentified)
    await broken.socket.send("{}")
    assert (await broken.closed()).code == 4105
    wrong = await host.identify(version=2)
    assert (await wrong.closed()).code == 4113


async def test_the_hello_of_a_control_connection_comes_first(one):
    control = await ControlSocket.dial(f"{one.nodes[0].url}{CONTROL_PATH}")
    hello = await control.expect(HostHello)
    assert (hello.protocol_min, hello.protocol_max, len(hello.challenge)) == (1, 1, 32)


async def test_an_identified_host_may_send_longer_frames_and_no_longer_ones_than_the_limit(one):
    await one.device()
    host = await one.host()
    control = await host.connect()
    listed = [ReportedSession(session_id=uuid4(), phase="running", attached=True) for _ in range(300)]
    assert len(encode(host.report(*listed))) > 20_000
    await control.send(host.report(*listed))
    assert (await control.expect(HostSessionClose)).reason == "host_repaired"
    await control.socket.send(" " * 70_000)
    assert (await control.closed()).code == 1009
