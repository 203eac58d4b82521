"""A node that hears nothing for a while: what it missed is made good, and nobody notices (``docs/spec/cluster.md``, R)."""

import asyncio

import httpx2 as httpx
import psycopg
import pytest

from bothy_kit.cluster import cluster
from bothy_kit.eventually import eventually
from bothy_kit.faults import start_behind_links
from bothy_kit.postgres import own_server
from bothy_kit.sockets import Closed
from bothy_server.migrations import run
from bothy_wire.frames import HostSessionOpen, HostSessionRecorded, SidePaired

QUICK = {
    "retry_after": "100 ms",
    "listen_reconnect_backoff_cap": "100 ms",
    "listen_watchdog_interval": "1 s",
    "listen_echo_timeout": "1 s",
}
SLOW = QUICK | {"listen_watchdog_interval": "1 h", "listen_echo_timeout": "10 s"}
LISTENER = "bothy-terminal-ephemeral"


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
def spoken(caplog):
    """``spoken()``: what listeners have logged, without those of a test's end."""
    caplog.set_level("INFO")
    words = "terminal ephemeral listener "
    return lambda: [each.message.removeprefix(words) for each in caplog.records if each.message.startswith(words)]


async def terminal(running):
    """A running session between the first node (device) and the last one (host, and where the sides meet)."""
    device = await running.device(url=running.nodes[0].url)
    host = await running.host(url=running.nodes[-1].url)
    await host.connect()
    stream = await device.open(host.host_id)
    await order(host, stream)
    client, data = await device.dial(stream, host.url), await host.dial(stream.session_id)
    await client.expect(SidePaired)
    await data.expect(SidePaired)
    await host.started(stream.session_id)
    await host.control.expect(HostSessionRecorded)
    return device, host, client, data


async def order(host, stream):
    """The host is told to dial for a session; a slow machine has it told again of others (L6)."""
    while (await host.control.expect(HostSessionOpen)).session_id != stream.session_id:
        pass


def missed(host, streams):
    """Whether no order to dial for one of these is among what came and was not waited for."""
    ids = {stream.session_id for stream in streams}
    return not any(isinstance(frame, HostSessionOpen) and frame.session_id in ids for frame in host.control.kept)


async def ready(node):
    async with httpx.AsyncClient(trust_env=False) as internal:
        return (await internal.get(f"http://{node.node.internal}/readyz")).status_code == 200


async def untouched(node, host, client, data):
    """Readiness and sockets are what they were."""
    assert await ready(node)
    await client.send(b"to the host")
    assert await data.receive() == b"to the host"
    await host.control.heartbeat()


def kill_backends(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = %s",
            [LISTENER],
        )


async def test_cross_node_listener_loss_reconciles(database_url, tmp_path, spoken):
    """What was decided elsewhere while a node is deaf reaches it by the event log; it stays ready and hears again."""
    async with cluster(database_url, tmp_path, nodes=2, start=start_behind_links, database=SLOW) as two:
        device, host, client, data = await terminal(two)
        deaf = two.nodes[1]
        deaf.deafen()
        deaf.database.cut(LISTENER)
        await eventually(lambda: spoken() == ["lost"])
        disabled = await device.manage("/state", {"state": "disabled"}, host_id=host.host_id, url=two.nodes[0].url)
        assert disabled.status == 200

        for side in (client, data):
            assert await side.closed() == Closed(4100, "host_disabled")
        assert (await host.control.closed()).code == 4111
        assert await ready(deaf)
        assert spoken() == ["lost"]

        await deaf.heal()

        await eventually(lambda: spoken() == ["lost", "restored"])
        assert (await (await host.identify()).closed()).code == 4111
        assert await ready(deaf)


async def test_cross_node_listener_loss_reconciles_backend_killed(database_url, tmp_path, spoken):
    async with cluster(database_url, tmp_path, nodes=2, database=SLOW) as two:
        device, host, client, data = await terminal(two)
        await asyncio.to_thread(kill_backends, database_url)
        await eventually(lambda: sorted(spoken()) == ["lost", "lost", "restored", "restored"])
        await untouched(two.nodes[1], host, client, data)
        stream = await device.open(host.host_id)
        await order(host, stream)
        assert sorted(spoken()) == ["lost", "lost", "restored", "restored"]


@pytest.mark.parametrize("fault", ["deafen", "drop_signals"])
async def test_cross_node_listener_loss_reconciles_silently_deaf(database_url, tmp_path, spoken, fault):
    """Noticed by the watchdog; an open that was missed meanwhile is served by the reconcile."""
    async with cluster(database_url, tmp_path, nodes=2, start=start_behind_links, database=QUICK) as two:
        device, host, client, data = await terminal(two)
        getattr(two.nodes[1], fault)()
        stream = await device.open(host.host_id)
        await eventually(lambda: spoken() == ["lost"])
        await untouched(two.nodes[1], host, client, data)
        assert missed(host, [stream])

        await two.nodes[1].heal()

        await order(host, stream)
        late = await device.dial(stream, host.url)
        await (await host.dial(stream.session_id)).expect(SidePaired)
        await late.expect(SidePaired)
        await eventually(lambda: spoken() == ["lost", "restored"])
        await untouched(two.nodes[1], host, client, data)


@pytest.mark.parametrize(
    ("change", "code", "reason"), [("repaired", 4110, "host_repaired"), ("disabled", 4111, "host_disabled")]
)
async def test_cross_node_listener_loss_reconciles_host_close(database_url, tmp_path, spoken, change, code, reason):
    """The tail of the event log is not told either: the reconcile of the listener alone closes."""
    quiet = {"poll_interval": "1 h"}
    async with cluster(
        database_url, tmp_path, nodes=2, start=start_behind_links, database=QUICK, event_log=quiet
    ) as two:
        device, host, client, data = await terminal(two)
        two.nodes[1].drop_signals()
        two.nodes[1].database.drop_signals("bothy-event-tail")
        if change == "repaired":
            await two.code(host.host_id)
        else:
            await device.manage("/state", {"state": "disabled"}, host_id=host.host_id)
        await eventually(lambda: spoken() == ["lost"])
        await untouched(two.nodes[1], host, client, data)

        await two.nodes[1].heal()

        assert (await host.control.closed()).code == code
        assert (await client.closed()).reason == reason
        assert (await data.closed()).code == 4100


async def test_a_failed_over_postgresql(server, url_of_it, tmp_path, spoken):
    async with cluster(url_of_it, tmp_path, nodes=2, database=SLOW) as two:
        device, host, client, data = await terminal(two)
        await asyncio.to_thread(server.stop)
        await eventually(lambda: spoken() == ["lost", "lost"])
        await untouched(two.nodes[1], host, client, data)

        server.start()
        await asyncio.to_thread(server.wait)

        await eventually(lambda: sorted(spoken()) == ["lost", "lost", "restored", "restored"])
        await untouched(two.nodes[1], host, client, data)
        stream = await device.open(host.host_id)
        await order(host, stream)


async def test_twenty_opens_while_the_listener_is_away_are_served_once_each(database_url, tmp_path, spoken):
    """Its backend is killed and what it dials gets no answer; five of the twenty are closed again meanwhile."""
    many = {"max_sessions_per_person": 50, "max_sessions_per_host": 50}
    async with cluster(database_url, tmp_path, nodes=2, start=start_behind_links, database=SLOW, terminal=many) as two:
        device, host, client, data = await terminal(two)
        two.nodes[1].deafen()
        two.nodes[1].database.cut(LISTENER)
        await eventually(lambda: spoken() == ["lost"])
        streams = [await device.open(host.host_id) for _ in range(20)]
        for stream in streams[15:]:
            await device.rest("POST", f"/terminal/sessions/{stream.session_id}/close", {})
        await host.control.heartbeat()
        assert missed(host, streams)

        await two.nodes[1].heal()

        open_ones = {stream.session_id for stream in streams[:15]}
        asked = []
        while not open_ones <= set(asked):
            asked.append((await host.control.expect(HostSessionOpen)).session_id)
        await host.control.handled()
        assert all(asked.count(session_id) == 1 for session_id in open_ones)
        assert missed(host, streams)
        assert not {stream.session_id for stream in streams[15:]} & set(asked)
        late, far = await device.dial(streams[0], host.url), await host.dial(streams[0].session_id)
        await far.expect(SidePaired)
        await late.expect(SidePaired)
        await untouched(two.nodes[1], host, client, data)
        await eventually(lambda: spoken() == ["lost", "restored"])
