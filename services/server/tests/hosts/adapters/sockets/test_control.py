"""The control socket of a real node: admit, accept, join, read, leave."""

import asyncio
import json
from uuid import UUID

import psycopg
import pytest
import pytest_asyncio
from websockets.exceptions import ConnectionClosed

from bothy_kit.cluster import cluster
from bothy_kit.fake_host import ControlSocket
from bothy_kit.sockets import FakeSide
from bothy_wire.frames import (
    HostHello,
    HostIdentified,
    HostKeys,
    HostPending,
    HostSessionOpen,
    HostSessionRecorded,
    HostSessionStarted,
)
from bothy_wire.limits import CONTROL_PATH
from bothy_wire.signing import fingerprint

pytestmark = pytest.mark.asyncio(loop_scope="module")
NODE_SETTINGS = {
    "hosts": {"pairing": "confirm", "max_waiting_frames": 1024},
    "database": {"retry_after": "50ms"},
    "terminal": {"host_duplicate_probe_timeout": "1 s"},
}
NOBODY = UUID(int=1)


async def confirm(device, host):
    """The owner compares the fingerprint and agrees."""
    shown = fingerprint(host.channel_key.public_key().public_bytes_raw())
    answer = await device.manage("/confirm", {"fingerprint": shown}, host_id=host.host_id)
    assert (answer.status, answer.body["state"]) == (200, "active")


@pytest_asyncio.fixture(loop_scope="module")
async def couple(node):
    """A device and its confirmed host."""
    device, host = await node.couple()
    await confirm(device, host)
    return device, host


async def presence(device, host):
    return (await device.rest("GET", f"/hosts/{host.host_id}")).body["presence"]


# ---- admit ----------------------------------------------------------------------------------------------------------


async def test_the_hello_says_what_a_host_needs(node):
    control = await ControlSocket.dial(f"{node.nodes[0].url}{CONTROL_PATH}")
    hello = await control.expect(HostHello)
    assert (hello.heartbeat_interval_s, hello.miss_limit, len(hello.challenge)) == (10, 3, 32)
    assert [key["kty"] for key in hello.jwks["keys"]] == ["OKP"]
    other = await ControlSocket.dial(f"{node.nodes[0].url}{CONTROL_PATH}")
    assert (await other.expect(HostHello)).challenge != hello.challenge
    await control.close()
    await other.close()


async def test_a_socket_without_our_subprotocol_is_told_so(node):
    side = await FakeSide.dial(f"{node.nodes[0].url}{CONTROL_PATH}", None)
    assert (await side.closed()).code == 4113


async def test_a_host_that_leaves_before_it_identified_leaves_nothing(node):
    before = node.nodes[0].node.control_sockets.connections
    control = await ControlSocket.dial(f"{node.nodes[0].url}{CONTROL_PATH}")
    await control.expect(HostHello)
    assert node.nodes[0].node.control_sockets.connections == before + 1
    await control.close()
    assert node.nodes[0].node.control_sockets.connections == before


@pytest.mark.parametrize(
    ("first", "code"),
    [("{}", 4105), (b"\x00", 4105), ('{"type":"host.heartbeat"}', 4105), ("x" * 20_000, 1009)],
)
async def test_the_first_frame_is_an_identify_and_nothing_else(node, first, code):
    control = await ControlSocket.dial(f"{node.nodes[0].url}{CONTROL_PATH}")
    await control.expect(HostHello)
    await control.socket.send(first)
    assert (await control.closed()).code == code


async def test_another_protocol_version_is_named(couple):
    _, host = couple
    closed = await (await host.identify(version=2)).closed()
    assert (closed.code, closed.reason) == (4113, "protocol version 1 expected")


async def state(device, host):
    shown = (await device.rest("GET", f"/hosts/{host.host_id}")).body
    return shown["state"], shown["disabled_reason"]


DISABLED = "disabled", "duplicate_connection"


async def test_a_copy_with_a_passed_join_value_disables_the_host_when_it_answers(couple):
    device, host = couple
    copy = host.copy()
    control = await host.connect()
    assert (await (await copy.identify()).closed()).code == 4112
    assert (await control.closed()).code == 4112
    assert await state(device, host) == DISABLED


async def test_a_copy_whose_turns_alternate_with_the_hosts_is_seen(couple):
    """Neither ever meets the other: each connects while the other is away."""
    device, host = couple
    copy = host.copy()
    await (await host.connect()).close()
    assert (await (await copy.identify()).closed()).code == 4112
    assert await state(device, host) == DISABLED


async def test_a_late_identify_that_nobody_waits_for_harms_nobody(node, couple):
    device, host = couple
    sockets = node.nodes[0].node.control_sockets
    late = host.copy()
    control = await host.connect()
    before = sockets.connections
    silent = await late.identify()
    silent.fall_silent()
    async with asyncio.timeout(10):
        while sockets.connections > before:  # noqa: ASYNC110 - the node tells nobody
            await asyncio.sleep(0.01)
    silent.listen_again()
    closed = await silent.closed()
    assert closed.code == 4009
    assert "a copy of this host" in closed.reason
    await control.heartbeat()
    assert await state(device, host) == ("active", None)


# ---- pending and confirmed ------------------------------------------------------------------------------------------


async def test_a_pending_host_waits_connected_and_goes_on_when_it_is_confirmed(node):
    device, host = await node.couple()
    control = await host.identify()
    await control.expect(HostPending)
    await control.heartbeat()
    assert await presence(device, host) == "offline", "pending is not eligible"

    await confirm(device, host)

    identified = await control.expect(HostIdentified)
    assert identified.pairing_seq == 1
    host.join, host.control = identified.join_offered, control
    await control.send(host.report())
    await control.handled()
    assert await presence(device, host) == "online"
    assert HostPending() not in control.kept, "it was said once"


async def test_a_pending_host_reports_nothing_and_speaks_of_no_session(node):
    _, host = await node.couple()
    for frame in (host.report(), HostSessionStarted(session_id=NOBODY)):
        control = await host.identify()
        await control.expect(HostPending)
        await control.send(frame)
        closed = await control.closed()
        assert (closed.code, closed.reason) == (4105, "this frame is not expected before host.identified")


async def test_a_pending_host_that_is_paired_again_is_told_so(node):
    _, host = await node.couple()
    control = await host.identify()
    await control.expect(HostPending)
    await node.code(host.host_id)
    assert (await control.closed()).code == 4110


async def test_of_two_connections_of_a_pending_host_the_newer_one_goes_on(node):
    device, host = await node.couple()
    both = [await host.identify() for _ in range(2)]
    for each in both:
        await each.expect(HostPending)
    await confirm(device, host)
    identified = [(await each.expect(HostIdentified), each) for each in both]
    (_, older), (offer, newer) = sorted(identified, key=lambda each: each[0].conn_id)
    older.fall_silent()
    host.join = offer.join_offered
    await newer.send(host.report())
    await newer.handled()
    assert await presence(device, host) == "online"
    await device.open(host.host_id)
    await newer.expect(HostSessionOpen)
    older.listen_again()
    assert (await older.closed()).code == 4009
    assert await state(device, host) == ("active", None)
    await newer.close()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("UPDATE hosts SET state = 'disabled' WHERE id = %s", 4111),
        ("UPDATE hosts SET state = 'disabled', disabled_reason = 'duplicate_connection' WHERE id = %s", 4112),
        ("UPDATE hosts SET state = 'retired' WHERE id = %s", 4111),
        ("UPDATE hosts SET pairing_seq = pairing_seq + 1 WHERE id = %s", 4110),
        ("UPDATE hosts SET name = name WHERE id = %s", None),
    ],
)
async def test_a_host_whose_row_changed_goes_or_stays(node, couple, change, code):
    _, host = couple
    control = await host.connect()
    await node.sql(change, host.host_id)
    await node.sql("SELECT bothy_append('[]', %s, '[]')", json.dumps([event(host)]))
    if code is None:
        await control.handled()
    else:
        assert (await control.closed()).code == code


def event(host):
    return {"type": "host.updated", "host_id": str(host.host_id)}


# ---- read -----------------------------------------------------------------------------------------------------------


async def test_an_older_connection_on_which_nobody_answers_is_closed(couple):
    device, host = couple
    older = await host.connect()
    older.fall_silent()
    newer = await host.connect_again()
    stream = await device.open(host.host_id)
    assert newer.kept == [], "it waits for the end of the probe"
    assert (await newer.expect(HostSessionOpen)).session_id == stream.session_id
    older.listen_again()
    assert (await older.closed()).code == 4009
    await newer.heartbeat()
    assert await presence(device, host) == "online"


async def test_two_machines_with_one_key_on_one_node_are_both_sent_away(couple):
    device, host = couple
    older = await host.connect()
    newer = await host.copy().connect()
    assert [(await each.closed()).code for each in (older, newer)] == [4112, 4112]
    assert await state(device, host) == DISABLED
    again = await (await host.copy().identify()).closed()
    assert again.code == 4112


async def test_a_host_that_left_is_offline(couple):
    device, host = couple
    await (await host.connect()).close()
    assert await presence(device, host) == "offline"


async def test_a_host_that_falls_silent_is_closed(database_url, tmp_path):
    quick = {"host_heartbeat_interval": "300ms", "host_heartbeat_miss_limit": 1, "close_linger": "100ms"}
    async with cluster(database_url, tmp_path, nodes=1, terminal=quick, wire={"identify_timeout": "300ms"}) as one:
        _, host = await one.couple()
        silent = await ControlSocket.dial(f"{one.nodes[0].url}{CONTROL_PATH}")
        control = await host.identify()
        assert (await silent.closed()).code == 4104
        await control.expect(HostIdentified)
        assert (await control.closed()).code == 4009

        unreachable = await host.identify()
        await unreachable.expect(HostIdentified)
        unreachable.socket.transport.pause_reading()
        sockets = one.nodes[0].node.control_sockets
        async with asyncio.timeout(10):
            while sockets.connections:  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.005)
        unreachable.socket.transport.abort()


async def test_a_host_that_says_more_than_can_be_stored_is_told_to_slow_down(node, couple):
    device, host = couple
    control = await host.connect()
    stream = await device.open(host.host_id)
    url = node.settings.database.url.get_secret_value()
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("SELECT FROM terminal_sessions WHERE id = %s FOR UPDATE", [stream.session_id])
        for _ in range(NODE_SETTINGS["hosts"]["max_waiting_frames"] + 2):
            await host.started(stream.session_id)
        assert (await control.closed()).code == 4108


async def test_a_report_holds_the_join_value_that_was_offered(couple):
    _, host = couple
    control = await host.identify()
    await control.expect(HostIdentified)
    await control.send(host.report())
    closed = await control.closed()
    assert (closed.code, closed.reason) == (4105, "the report does not hold the join value that was offered")


@pytest.mark.parametrize(("message", "code"), [(b"binary", 4105), ("{}", 4105), ("x" * 70_000, 1009)])
async def test_what_is_no_frame_closes_an_identified_connection(couple, message, code):
    _, host = couple
    control = await host.connect()
    await control.socket.send(message)
    assert (await control.closed()).code == code


async def test_sessions_are_reported_and_recorded(couple):
    device, host = couple
    control = await host.connect()
    stream = await device.open(host.host_id)
    await host.started(stream.session_id)
    assert (await control.expect(HostSessionRecorded)).state == "active"
    await host.ended(stream.session_id)
    assert (await control.expect(HostSessionRecorded)).state == "closed"


async def test_a_new_key_of_the_server_reaches_every_host(node, couple):
    _, host = couple
    control = await host.connect()
    node.nodes[0].node.control_sockets.keys_changed()
    assert (await control.expect(HostKeys)).jwks["keys"]


async def test_a_host_that_takes_nothing_is_closed(node, couple):
    """``hosts.max_waiting_frames`` bounds what waits for it."""
    _, host = couple
    control = await host.connect()
    (connection,) = [each for each in node.nodes[0].node.control_sockets._open if each.host_id == host.host_id]
    for _ in range(NODE_SETTINGS["hosts"]["max_waiting_frames"] + 1):
        connection.send(HostPending())
    closed = await control.closed()
    assert closed.code == 4106
    connection.send(HostPending())
    connection.close(1000)


# ---- the database is away -------------------------------------------------------------------------------------------


async def test_without_the_database_nobody_is_let_in_and_nobody_is_sent_away(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1, database={"retry_after": "20ms"}) as one:
        _, host = await one.couple()
        identified = await host.identify()
        host.join = (await identified.expect(HostIdentified)).join_offered
        async with one.outage():
            stranger = await host.identify()
            assert (await stranger.closed()).code == 1013
            await identified.send(host.report())
            assert (await identified.closed()).code == 1013, "what it runs is not known, so it comes back and says it"
        control = await host.connect()
        async with one.outage():
            await host.started(NOBODY)
            await control.heartbeat()
        await control.handled()
        assert control.kept == [], "what was said meanwhile is said again by the host"


async def test_what_changed_during_an_outage_is_seen_after_it(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1, database={"retry_after": "20ms"}) as one:
        _, host = await one.couple()
        control = await host.connect()
        await one.sql("UPDATE hosts SET state = 'disabled' WHERE id = %s", host.host_id)
        async with one.outage():
            (connection,) = one.nodes[0].node.control_sockets._open
            connection.judge_again()
            await control.heartbeat()
        assert (await control.closed()).code == 4111


async def test_a_node_that_leaves_says_so(couple, node):
    _, host = couple
    control = await host.connect()
    node.nodes[0].node.control_sockets.close_all(1012, "the node is leaving")
    closed = await control.closed()
    assert (closed.code, closed.reason) == (1012, "the node is leaving")
    with pytest.raises(ConnectionClosed):
        await control.heartbeat()
