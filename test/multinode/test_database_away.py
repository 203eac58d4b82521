"""PostgreSQL goes away and comes back: what runs goes on, what is new waits (``docs/spec/cluster.md``, N1, N1a)."""

import asyncio
import base64
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

import httpx2 as httpx
import psycopg
import pytest

from bothy_kit.cluster import Running, cluster
from bothy_kit.eventually import eventually
from bothy_kit.faults import start_behind_links
from bothy_kit.postgres import own_server
from bothy_kit.sockets import PATIENCE_S
from bothy_server.migrations import run
from bothy_wire.frames import HostSessionRecorded, SidePaired, SideUnpaired
from bothy_wire.signing import thumbprint

SHORT = {"retry_after": "100 ms", "connect_timeout": "1 s", "listen_reconnect_backoff_cap": "200 ms"}
IMPATIENT = SHORT | {
    "pool_timeout": "500 ms",
    "statement_timeout": "1 s",
    "lock_timeout": "1 s",
    "transaction_timeout": "1 s",
}


@pytest.fixture(scope="module")
def server():
    """A server that the test may stop and start."""
    with own_server() as server:
        yield server


@pytest.fixture
def url_of_it(server):
    name = server.postgres.create_database()
    run.upgrade(server.postgres.url(name))
    yield server.postgres.url(name)
    server.postgres.drop_database(name)


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2, start=start_behind_links, database=SHORT) as running:
        yield running


@pytest.fixture
async def impatient(database_url, tmp_path):
    """Two nodes that soon see that no answer comes."""
    async with cluster(database_url, tmp_path, nodes=2, start=start_behind_links, database=IMPATIENT) as running:
        yield running


async def pair(running):
    """A running session whose sides meet on the last node; its host's control connection is there too."""
    device = await running.device(url=running.nodes[0].url)
    host = await running.host(url=running.nodes[-1].url)
    await host.connect()
    stream = await device.open(host.host_id)
    client, data = await device.dial(stream, host.url), await host.dial(stream.session_id)
    await client.expect(SidePaired)
    await data.expect(SidePaired)
    await host.started(stream.session_id)
    await host.control.expect(HostSessionRecorded)
    await eventually(lambda: holds(running.nodes[-1], stream))  # the event log told the node that the session runs
    return device, host, stream, client, data


def holds(node, stream):
    """Whether an earlier decision lets the host of this session in."""
    return node.node.switchboard.remembered_host(stream.session_id) is not None


async def passes(client, data):
    """Bytes pass both ways."""
    await client.send(b"to the host")
    assert await data.receive() == b"to the host"
    await data.send(b"to the device")
    assert await client.receive() == b"to the device"


async def readiness(node):
    async with httpx.AsyncClient(trust_env=False) as internal:
        answer = await internal.get(f"http://{node.node.internal}/readyz")
    return answer.status_code, answer.json()["checks"]["database"]


def row(database_url, session_id):
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT state, paired_seq, close_reason FROM terminal_sessions WHERE id = %s", [session_id]
        ).fetchone()


def assert_unavailable(answer):
    assert (answer.status, answer.code, "retry-after" in answer.headers) == (503, "unavailable", True)


async def host_dials_again(client, data, host, stream):
    """The host loses its data connection, and the two meet again over a new one."""
    data.cut()
    await client.expect(SideUnpaired)
    await client.ready()
    again = await host.dial(stream.session_id)
    await again.expect(SidePaired)
    return again, await client.expect(SidePaired)


async def test_what_runs_goes_on_while_postgresql_is_stopped_and_started(server, url_of_it, tmp_path):
    async with cluster(url_of_it, tmp_path, nodes=2, database=SHORT) as two:
        device, host, stream, client, data = await pair(two)
        another = await device.open(host.host_id)
        waiting = await host.dial(another.session_id)
        step_up_id = await device.step_up("open", host.host_id, "shell", "alex-shell")
        body = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
        body["step_up_id"] = step_up_id

        await asyncio.to_thread(server.stop)
        for node in two.nodes:
            await eventually(lambda node=node: away(node))
            assert_unavailable(await device.rest("POST", "/terminal/sessions", body, url=node.url))
            attach = f"/terminal/sessions/{stream.session_id}/attach"
            assert_unavailable(await device.rest("POST", attach, {"step_up_id": None}, url=node.url))
            assert (await (await device.identify(another, node.url)).closed()).code == 1013
            assert (await (await host.identify_data(another.session_id, node.url)).closed()).code == 1013
            assert (await (await host.identify(node.url)).closed()).code == 1013
        await passes(client, data)
        await host.control.heartbeat()

        server.start()
        await asyncio.to_thread(server.wait)
        for node in two.nodes:
            await eventually(lambda node=node: back(node))
        await passes(client, data)
        await host.control.heartbeat()
        assert (await device.state(stream.session_id))["state"] == "active"
        assert (await device.rest("POST", "/terminal/sessions", body)).status == 201
        late = await device.dial(another, host.url)
        await late.expect(SidePaired)
        await waiting.expect(SidePaired)


async def away(node):
    return await readiness(node) == (200, "away")


async def back(node):
    return await readiness(node) == (200, "ok")


@pytest.mark.parametrize("fault", ["lost", "frozen"])
async def test_a_host_that_dials_again_meets_its_device_meanwhile(impatient, database_url, fault):
    device, host, stream, client, data = await pair(impatient)
    relay = impatient.nodes[1]
    if fault == "lost":
        await relay.lose_database()
    else:
        relay.database.pause()

    data, paired = await host_dials_again(client, data, host, stream)

    await host.control.heartbeat()
    await passes(client, data)
    assert confirmed(paired.session_token) == thumbprint(device.channel_key.public_key().public_bytes_raw())
    assert row(database_url, stream.session_id) == ("active", 1, None)
    await relay.heal()
    await eventually(lambda: row(database_url, stream.session_id) == ("active", 2, None))
    await passes(client, data)


def confirmed(token):
    """The key that a session token is bound to."""
    claims = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["cnf"]["jkt"]


@pytest.mark.parametrize("paired", ["before", "meanwhile"])
async def test_a_revocation_during_the_outage_closes_both_sides_after_it(two, database_url, paired):
    _, host, stream, client, data = await pair(two)
    await two.nodes[1].lose_database()
    if paired == "meanwhile":
        data, _ = await host_dials_again(client, data, host, stream)
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM host_owners")
        if paired == "before":  # whoever takes the right away ends the sessions
            connection.execute(
                "UPDATE terminal_sessions SET state = 'closed', close_reason = 'revoked', closed_at = now()"
            )
    await passes(client, data)

    await two.nodes[1].heal()

    assert ((await client.closed()).code, (await data.closed()).code) == (4100, 4100)
    await eventually(lambda: row(database_url, stream.session_id) == ("closed", 1, "revoked"))


async def test_an_earlier_decision_holds_only_so_long(database_url, tmp_path):
    short = {"terminal": {"stale_right_max": "500 ms"}, "event_log": {"poll_interval": "50 ms"}}
    async with cluster(database_url, tmp_path, nodes=2, start=start_behind_links, database=SHORT, **short) as two:
        _, host, stream, client, data = await pair(two)
        await two.nodes[1].lose_database()
        data.cut()
        await client.expect(SideUnpaired)
        await client.ready()
        await eventually(lambda: not holds(two.nodes[1], stream))
        assert (await (await host.identify_data(stream.session_id)).closed()).code == 1013
        await two.nodes[1].heal()
        await eventually(lambda: back(two.nodes[1]))
        data = await host.dial(stream.session_id)
        await data.expect(SidePaired)
        await client.expect(SidePaired)
        await passes(client, data)


async def test_nobody_else_comes_in_on_an_earlier_decision(two, database_url):
    device, host, stream, client, data = await pair(two)
    await two.device("Sam")
    stranger = await two.host("lab-2", "Sam", url=host.url)
    await two.nodes[1].lose_database()
    data.cut()
    await client.expect(SideUnpaired)
    await client.ready()
    assert (await (await stranger.identify_data(stream.session_id)).closed()).code == 1013
    stranger.host_id, stranger.pairing_seq = host.host_id, host.pairing_seq
    assert (await (await stranger.identify_data(stream.session_id)).closed()).code == 1013
    assert (await (await device.identify(stream, host.url)).closed()).code == 1013
    data = await host.dial(stream.session_id)
    await data.expect(SidePaired)
    await client.expect(SidePaired)
    assert row(database_url, stream.session_id) == ("active", 1, None)


async def test_no_timer_ends_what_waits_for_the_database(database_url, tmp_path):
    """A lone side whose time began later is the clock: when it is closed, the time of the other is over."""
    short = {"open_timeout": "2 s", "redial_after": "20 ms", "sweep_interval": "1 h"}
    async with cluster(
        database_url, tmp_path, nodes=1, start=start_behind_links, database=SHORT, terminal=short
    ) as one:
        device, host, stream, client, data = await pair(one)
        opening = await device.open(host.host_id)
        data.cut()
        await client.expect(SideUnpaired)
        await client.ready()
        lone = await device.dial(opening)
        await one.nodes[0].lose_database()

        assert (await lone.closed()).code == 4102

        data = await host.dial(stream.session_id)
        await data.expect(SidePaired)
        await client.expect(SidePaired)
        await passes(client, data)
        assert row(database_url, opening.session_id) == ("opening", 0, None)


async def test_a_session_that_opens_is_never_paired_meanwhile(two):
    device, host, _, _, _ = await pair(two)
    opening = await device.open(host.host_id)
    lone = await device.dial(opening, host.url)
    await two.nodes[1].lose_database()
    assert (await (await host.identify_data(opening.session_id)).closed()).code == 1013
    await two.nodes[1].heal()
    await eventually(lambda: back(two.nodes[1]))
    data = await host.dial(opening.session_id)
    await data.expect(SidePaired)
    await lone.expect(SidePaired)


async def test_a_device_that_goes_meanwhile_is_written_afterwards(two, database_url):
    device, host, stream, client, data = await pair(two)
    await two.nodes[1].lose_database()
    client.cut()
    await data.expect(SideUnpaired)
    await data.ready()
    assert row(database_url, stream.session_id) == ("active", 1, None)
    await two.nodes[1].heal()
    await eventually(lambda: row(database_url, stream.session_id) == ("detached", 1, None))
    client = await device.dial(await device.attach(stream.session_id), host.url)
    await client.expect(SidePaired)
    await data.expect(SidePaired)
    await passes(client, data)


async def test_a_node_ends_in_time_with_the_way_to_its_database_frozen(database_url, tmp_path):
    """Nothing refuses and nothing answers: every task that waits for the database would wait for minutes."""
    patient = dict.fromkeys(("transaction_timeout", "statement_timeout", "lock_timeout"), "5 min")
    async with cluster(database_url, tmp_path, nodes=2, start=start_behind_links, database=patient) as running:
        device = await running.device()
        node = running.nodes.pop()
        assert connections_to(node.database)
        node.database.pause()
        asking = asyncio.create_task(device.rest("GET", "/hosts", url=f"http://{node.node.public}"))
        async with asyncio.timeout(4 * PATIENCE_S):
            await Running.stop(node)
        assert connections_to(node.database) == 0
        with suppress(httpx.TransportError):  # it may have been answered 503
            await asking
        node.database.flow()


def connections_to(way):
    """How many sockets this process has to that address."""
    held = 0
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # one that is not connected, or the folder's own
            if entry.readlink().name.startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as each:
                    held += each.family == socket.AF_INET and each.getpeername()[1] == way.port
    return held
