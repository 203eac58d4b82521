"""What a wrong edge does to a session, and what it does not do (``docs/spec/cluster.md``, L)."""

import asyncio

import httpx2 as httpx
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from bothy_kit.cluster import cluster
from bothy_kit.fake_host import ControlSocket
from bothy_wire.frames import (
    HostHello,
    HostIdentified,
    HostSessionOpen,
    HostSessionRecorded,
    ReportedSession,
    SidePaired,
    SideUnpaired,
)
from bothy_wire.limits import CONTROL_PATH


@pytest.fixture
async def two(database_url, tmp_path):
    short = {"open_timeout": "1 s", "redial_after": "50 ms", "sweep_interval": "1 h"}
    async with cluster(database_url, tmp_path, nodes=2, terminal=short) as running:
        yield running


@pytest.fixture
async def parties(two):
    """A device on the first node, and its host with a control connection on the second."""
    device = await two.device(url=two.nodes[0].url)
    host = await two.host()
    await host.connect(two.nodes[1].url)
    return device, host


async def unpaired(node, side):
    async with httpx.AsyncClient(trust_env=False) as internal:
        lines = (await internal.get(f"http://{node.node.internal}/metrics")).text.splitlines()
        ready = await internal.get(f"http://{node.node.internal}/readyz")
    assert ready.status_code == 200
    (line,) = [
        each for each in lines if each.startswith(f'bothy_terminal_relay_unpaired_total{{bothy_terminal_side="{side}"')
    ]
    return float(line.split()[-1])


async def running_pair(device, host, url):
    """A started session whose sides met at ``url``."""
    stream = await device.open(host.host_id)
    await host.control.expect(HostSessionOpen)
    client, data = await device.dial(stream, url), await host.dial(stream.session_id, url)
    await client.expect(SidePaired)
    await data.expect(SidePaired)
    await host.started(stream.session_id)
    await host.control.expect(HostSessionRecorded)
    return stream, client, data


async def test_tmt15_two_nodes_with_hash_routing(database_url, tmp_path):
    """The control connection is on the second node; the sides meet on either, as the hash says."""
    async with cluster(database_url, tmp_path, nodes=2) as two:
        device, host = await two.device(url=two.nodes[0].url), await two.host()
        await host.connect(two.nodes[1].url)
        keys = await keys_of_hello(two.nodes[1].url)
        met = set()
        while len(met) < 2:
            stream = await device.open(host.host_id, url=two.nodes[0].url)
            url = two.url_of(stream.session_id, "device")
            assert url == two.url_of(stream.session_id, "host")
            if url not in met:
                await meets_on(two, device, host, stream, url, keys, first=not met)
                met.add(url)
            await device.rest("POST", f"/terminal/sessions/{stream.session_id}/close", {})
        assert [await unpaired(node, side) for node in two.nodes for side in ("client", "host")] == [0, 0, 0, 0]


async def keys_of_hello(url):
    """The keys that a node tells a host."""
    control = await ControlSocket.dial(f"{url}{CONTROL_PATH}")
    jwks = (await control.expect(HostHello)).jwks
    await control.close()
    return KeySet.import_key_set({"keys": jwks["keys"]})


async def meets_on(two, device, host, stream, url, keys, *, first):
    """One order to dial, bytes both ways, a token that the other node's keys verify, and an attach by way of the other."""
    while (await host.control.expect(HostSessionOpen)).session_id != stream.session_id:
        continue
    client, data = await device.dial(stream, url), await host.dial(stream.session_id, url)
    token = (await client.expect(SidePaired)).session_token
    assert jwt.decode(token, keys, algorithms=["Ed25519"]).claims["sub"] == str(stream.session_id)
    await data.expect(SidePaired)
    for here, there in ((client, data), (data, client)):
        for message in (b"first", b"second" * 1000, b"\x00\xff"):
            await here.send(message)
            assert await there.receive() == message
    await host.started(stream.session_id)
    await host.control.expect(HostSessionRecorded)
    assert (await device.state(stream.session_id))["state"] == "active"
    repeated = [each for each in host.control.kept if getattr(each, "session_id", None) == stream.session_id]
    assert not repeated or first, "an order is repeated only where the probation of the host's connection ends (H3)"

    again = await device.attach(stream.session_id, url=two.others(url)[0].url)
    assert (await client.closed()).code == 4103
    await data.expect(SideUnpaired)
    await data.ready()
    client = await device.dial(again, url)
    await client.expect(SidePaired)
    await data.expect(SidePaired)
    await data.send(b"met again")
    assert await client.receive() == b"met again"


async def test_tmt15_without_hash_routing(two, parties, caplog):
    """Each side is alone on its node: both are told, each is counted, and the session ends once."""
    two.mode = "split"
    device, host = parties
    stream = await device.open(host.host_id)
    client = await device.dial(stream, two.url_of(stream.session_id, "device"))
    data = await host.dial(stream.session_id, two.url_of(stream.session_id, "host"))

    first, second = await asyncio.gather(client.closed(), data.closed())

    assert (first.code, second.code) == (4102, 4102)
    assert (first.messages, second.messages) == ([], [])
    assert (await unpaired(two.nodes[0], "client"), await unpaired(two.nodes[1], "host")) == (1, 1)
    assert (await unpaired(two.nodes[0], "host"), await unpaired(two.nodes[1], "client")) == (0, 0)
    row = await device.state(stream.session_id)
    assert (row["state"], row["close_reason"], row["close_detail"]) == ("closed", "open_failed", "open_timeout")
    told = "SELECT action, code FROM audit_log WHERE session_id = %s ORDER BY position"
    opened, *ended = await two.sql(told, stream.session_id)
    assert (opened[0], ended) == ("terminal.open", [("terminal.terminate", "open_timeout")])
    changed = "SELECT count(*) FROM event_log WHERE session_id = %s AND type = 'terminal_session.changed'"
    assert await two.sql(changed, stream.session_id) == [(2,)]
    records = [each for each in caplog.records if each.message == "terminal relay side unpaired"]
    sides = sorted(getattr(each, "bothy.terminal.side") for each in records)
    assert (sides, {getattr(each, "bothy.close.code") for each in records}) == (["client", "host"], {4102})
    ids = str(stream.session_id), str(host.host_id)
    assert not any(each in repr(vars(record)) for record in records for each in ids)


async def test_tmt15_without_hash_routing_attach(two, parties):
    device, host = parties
    here, there = two.nodes[0].url, two.nodes[1].url
    stream, client, data = await running_pair(device, host, here)
    client.cut()
    await data.expect(SideUnpaired)
    await data.ready()

    again = await device.attach(stream.session_id)
    lost = await device.dial(again, there)
    assert (await lost.closed()).code == 4102
    assert await unpaired(two.nodes[1], "client") == 1
    assert (await device.state(stream.session_id))["state"] == "detached"

    client = await device.dial(await device.attach(stream.session_id), here)
    await client.expect(SidePaired)
    await data.expect(SidePaired)


async def test_a_lone_device_of_a_running_session_has_the_host_dial_again(two, parties):
    """The set of nodes changed under a session: the sides meet again where the device is (L6)."""
    device, host = parties
    stream, client, _ = await running_pair(device, host, two.nodes[0].url)
    client.cut()

    client = await device.dial(await device.attach(stream.session_id), two.nodes[1].url)
    asked = await host.control.expect(HostSessionOpen)
    assert asked.session_id == stream.session_id
    data = await host.dial(stream.session_id, two.nodes[1].url)
    await client.expect(SidePaired)
    await data.send(b"again")
    assert await client.receive() == b"again"


async def test_the_newest_attach_wins_and_the_older_device_is_told(two, parties):
    device, host = parties
    stream, client, data = await running_pair(device, host, two.nodes[0].url)
    other = await two.another_device("Robin", url=two.nodes[1].url)
    assert (await other.rest("POST", f"/terminal/sessions/{stream.session_id}/attach", {})).code == "step_up_required"
    step_up_id = await other.step_up("attach", host.host_id, "shell", "alex-shell")

    taken = await other.attach(stream.session_id, step_up_id)

    assert (await client.closed()).code == 4103
    await data.expect(SideUnpaired)
    await data.ready()
    client = await other.dial(taken, two.nodes[0].url)
    await client.expect(SidePaired)
    stale = await device.identify(stream, two.nodes[0].url)
    assert (await stale.closed()).code == 4103


async def test_a_reconnect_with_the_same_token_replaces_the_older_side(two, parties):
    device, host = parties
    stream, client, data = await running_pair(device, host, two.nodes[0].url)
    again = await device.dial(stream, two.nodes[0].url)
    assert (await client.closed()).code == 4103
    await data.expect(SideUnpaired)
    await data.ready()
    await again.expect(SidePaired)


async def test_a_newer_dial_of_the_host_replaces_the_older(two, parties):
    device, host = parties
    stream, client, data = await running_pair(device, host, two.nodes[0].url)
    newer = await host.dial(stream.session_id, two.nodes[0].url)
    assert (await data.closed()).code == 1000
    await client.expect(SideUnpaired)
    await client.ready()
    await newer.expect(SidePaired)


async def test_a_report_ends_what_the_host_does_not_run(two, parties):
    device, host = parties
    stream, client, _ = await running_pair(device, host, two.nodes[0].url)
    await host.control.close()
    await host.connect(two.nodes[1].url)
    assert (await client.closed()).reason == "host_lost"
    assert (await device.state(stream.session_id))["close_reason"] == "host_lost"


async def test_a_report_of_another_run_ends_what_the_former_one_ran(two, parties):
    device, host = parties
    stream, client, _ = await running_pair(device, host, two.nodes[0].url)
    await host.control.close()
    host.boot_id = host.boot_id.__class__(int=host.boot_id.int + 1)
    await host.connect(two.nodes[1].url)
    assert (await client.closed()).reason == "host_restarted"
    assert (await device.state(stream.session_id))["close_reason"] == "host_restarted"


async def test_a_host_that_comes_back_with_its_sessions_keeps_them(two, parties):
    device, host = parties
    stream, client, data = await running_pair(device, host, two.nodes[0].url)
    await host.control.close()
    control = await host.identify(two.nodes[0].url)
    host.join = (await control.expect(HostIdentified)).join_offered
    await control.send(host.report(ReportedSession(session_id=stream.session_id, phase="running", attached=True)))
    await control.handled()
    host.control = control
    await data.send(b"kept")
    assert await client.receive() == b"kept"
    assert (await device.state(stream.session_id))["state"] == "active"
