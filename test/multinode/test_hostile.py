"""Peers that do not play along: they cost a bounded amount, for a bounded time, and nobody else."""

import asyncio
import base64
import os
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed

from bothy_kit.cluster import cluster
from bothy_wire.frames import HostIdentified, HostSessionEnded, HostSessionRecorded, SidePaired, SideUnpaired
from bothy_wire.limits import STREAM_SUBPROTOCOL, stream_path

NOWHERE = "0199aaaa-0000-7000-8000-00000000000a"


@pytest.fixture
async def hasty(database_url, tmp_path):
    """A node that waits for nobody, and has room for two sides that wait."""
    short = {"close_linger": "300 ms", "max_pending_per_node": 2}
    async with cluster(database_url, tmp_path, nodes=1, terminal=short, wire={"identify_timeout": "300 ms"}) as running:
        yield running


def upgraded(url, path, subprotocol):
    """A socket behind a WebSocket handshake that nobody reads."""
    address = urlsplit(url)
    client = socket.create_connection((address.hostname, address.port))
    key = base64.b64encode(os.urandom(16)).decode()
    client.sendall(
        f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {subprotocol}\r\n\r\n".encode()
    )
    client.setblocking(False)
    return client


async def test_a_flood_of_pings_from_a_stranger_stops_in_the_network_and_is_dropped(hasty):
    pings = (b"\x89\xfd" + bytes(4) + bytes(125)) * 500
    loop = asyncio.get_running_loop()
    with upgraded(hasty.nodes[0].url, stream_path(NOWHERE), STREAM_SUBPROTOCOL) as client:
        sent = 0

        async def flood():
            nonlocal sent
            with suppress(ConnectionError):
                while True:
                    await loop.sock_sendall(client, pings)
                    sent += len(pings)

        async with asyncio.timeout(15):
            await flood()  # ends when the node drops the connection
    assert sent < 32 * 1024 * 1024
    assert not [
        task for task in asyncio.all_tasks() if "websocket" in repr(task.get_coro()).lower() and not task.done()
    ]


async def test_a_host_that_was_paired_again_is_cut_even_if_it_takes_nothing(hasty):
    device = await hasty.device()
    host = await hasty.host()
    control = await host.connect()
    control.socket.transport.pause_reading()
    await hasty.code(host.host_id)
    host.profiles = {"evil": ["root"]}
    with suppress(ConnectionClosed, TimeoutError):
        async with asyncio.timeout(10):
            while hasty.nodes[0].node.control_sockets.connections:
                await control.send(host.report())
                await asyncio.sleep(0)
    assert hasty.nodes[0].node.control_sockets.connections == 0
    assert "evil" not in (await device.rest("GET", f"/hosts/{host.host_id}")).body["profiles"]


async def test_sessions_without_a_device_take_no_room_from_others(hasty):
    device = await hasty.device()
    host = await hasty.host()
    await host.connect()
    for _ in range(3):
        stream = await device.open(host.host_id)
        client, data = await device.dial(stream), await host.dial(stream.session_id)
        await client.expect(SidePaired)
        await data.expect(SidePaired)
        await host.started(stream.session_id)
        client.cut()
        await data.expect(SideUnpaired)
        data.cut()
        await host.dial(stream.session_id)  # it waits for its device, for hours
    stream = await device.open(host.host_id)
    client, data = await device.dial(stream), await host.dial(stream.session_id)
    await client.expect(SidePaired)
    await data.expect(SidePaired)


async def test_the_counterpart_of_a_side_that_waits_always_has_room(hasty):
    device = await hasty.device()
    host = await hasty.host()
    await host.connect()
    first, second, third = [await device.open(host.host_id) for _ in range(3)]
    waiting = [await device.dial(first), await device.dial(second)]
    assert (await (await device.identify(third)).closed()).code == 1013
    await host.dial(first.session_id)
    await waiting[0].expect(SidePaired)


async def test_what_ended_while_the_control_connection_was_down_keeps_its_reason(hasty):
    device = await hasty.device()
    host = await hasty.host()
    await host.connect()
    stream = await device.open(host.host_id)
    client = await device.dial(stream)
    await host.dial(stream.session_id)
    await client.expect(SidePaired)
    await host.started(stream.session_id)
    await host.control.expect(HostSessionRecorded)
    await host.control.close()
    control = await host.identify()
    host.join = (await control.expect(HostIdentified)).join_offered

    await control.send(HostSessionEnded(session_id=stream.session_id, reason="process_exited"))
    await control.send(host.report())

    assert (await control.expect(HostSessionRecorded)).state == "closed"
    assert (await client.closed()).reason == "process_exited"
    await control.close()


async def test_a_name_holds_no_control_character(hasty):
    device = await hasty.device()
    host = await hasty.host()
    body = {"purpose": "open", "host_id": str(host.host_id), "profile": "a\x00b", "session_user": "alex"}
    assert (await device.rest("POST", "/step-up/challenges", body)).code == "body_invalid"
    host.profiles = {"a\x1b]0;b": ["alex"]}
    control = await host.identify()
    host.join = (await control.expect(HostIdentified)).join_offered
    await control.send(host.report())
    assert (await control.closed()).code == 4105


async def test_a_step_up_tells_nothing_of_the_hosts_of_others(hasty):
    await hasty.device()
    stranger = await hasty.device("Sam")
    host = await hasty.host()
    acts = [
        {"purpose": "open", "host_id": each, "profile": "shell", "session_user": "alex"}
        for each in (str(host.host_id), NOWHERE)
    ]
    foreign, unknown = [await stranger.rest("POST", "/step-up/challenges", act) for act in acts]
    assert (foreign.status, foreign.body) == (unknown.status, unknown.body)
    assert foreign.code == "host_unknown"


async def test_a_path_has_one_spelling_and_sends_nobody_elsewhere(hasty):
    device = await hasty.device()
    answer = await device.rest("GET", "/hosts/")
    assert (answer.status, answer.code) == (404, "path_unknown")
