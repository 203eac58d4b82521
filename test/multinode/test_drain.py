"""A node leaves in order, and no session ends by it (``docs/spec/cluster.md``, N2)."""

import asyncio
import json
import subprocess
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx2 as httpx
import pytest

from bothy_kit.cluster import ORIGIN, cluster, start
from bothy_kit.eventually import eventually
from bothy_kit.fake_host import ControlSocket
from bothy_kit.serving import BOTHY_SERVER, serving
from bothy_kit.sockets import PATIENCE_S, FakeSide
from bothy_server.cluster.domain.drain import Left, Step
from bothy_server.identity.adapters.keystore.store import add_key
from bothy_server.identity.domain.tokens import DrainToken, ProbeToken
from bothy_server.wiring import tokens_of_this_machine
from bothy_wire.frames import HostSessionOpen, ReportedSession, SidePaired, SideUnpaired

LEAVES = 1012, "the node is leaving"
QUICK = {"drain_spread": "0", "drain_batch_gap": "20 ms", "drain_batch": 2}
STANDS = {"drain_spread": "0", "drain_batch_gap": "10 min", "drain_batch": 1, "drain_timeout": "1 d"}
"""The next batch never comes: a test sees what one of them does, however slow the machine."""


@asynccontextmanager
async def two(database_url, tmp_path, **server):
    """The first one is going to leave; its status is written often."""
    often = {"cluster": {"status_interval": "100 ms"}}
    async with cluster(database_url, tmp_path, nodes=2, server=QUICK | server, **often) as running:
        yield running


async def met(running, device, host, *, at):
    """A running session whose sides meet on one node."""
    stream = await device.open(host.host_id)
    client, data = await device.dial(stream, at), await host.dial(stream.session_id, at)
    await client.expect(SidePaired)
    await data.expect(SidePaired)
    await host.started(stream.session_id)
    host.sessions.append(ReportedSession(session_id=stream.session_id, phase="running", attached=True))
    await eventually(lambda: states(running, [stream.session_id], "active"))
    return stream.session_id, client, data


async def meet_again(running, device, host, session_id, *, at):
    """The same session, elsewhere."""
    stream = await device.attach(session_id, url=at)
    client, data = await device.dial(stream, at), await host.dial(session_id, at)
    await client.expect(SidePaired)
    await data.expect(SidePaired)
    await passes(client, data)
    return client, data


async def passes(client, data):
    """Bytes pass both ways."""
    for one, other in ((client, data), (data, client)):
        await one.send(b"typed")
        assert await other.receive() == b"typed"


async def states(running, session_ids, *allowed: str):
    rows = await running.sql("SELECT state FROM terminal_sessions WHERE id = ANY(%s)", list(session_ids))
    return len(rows) == len(session_ids) and {state for (state,) in rows} <= set(allowed)


async def ends(*sockets: ControlSocket | FakeSide):
    """How each of them ended."""
    return [(each.code, each.reason) for each in await asyncio.gather(*(socket.closed() for socket in sockets))]


async def ready(node):
    async with httpx.AsyncClient(trust_env=False) as rest:
        return await rest.get(f"http://{node.internal}/readyz")


async def row(running, node):
    ((state,),) = await running.sql("SELECT state FROM cluster_nodes WHERE node_id = %s", node.id)
    return state


async def drained(node):
    """Follow the drain to its end; the last that it told."""
    node.drain.begin()
    async with asyncio.timeout(PATIENCE_S):
        return [progress async for progress in node.drain.watch()][-1]


# ---- the order ------------------------------------------------------------------------------------------------------


async def test_everything_leaves_and_meets_again_elsewhere(database_url, tmp_path):
    async with two(database_url, tmp_path) as running:
        leaves, stays = running.nodes
        device, host = await running.couple()
        control = await host.connect(leaves.url)
        pairs = [await met(running, device, host, at=leaves.url) for _ in range(5)]
        sessions = [session_id for session_id, _, _ in pairs]
        over = asyncio.create_task(drained(leaves.node))
        assert await ends(control) == [LEAVES]
        await host.connect(stays.url)
        assert await ends(*(side for _, client, data in pairs for side in (client, data))) == [LEAVES] * 10
        last = await over
        assert (last.step, last.left) == (Step.OVER, Left(0, 0, 0))
        answer = await ready(leaves.node)
        assert (answer.status_code, answer.json()["status"]) == (503, "draining")
        with pytest.raises(OSError):
            await asyncio.open_connection(leaves.node.public.host, leaves.node.public.port)
        await eventually(lambda: states(running, sessions, "detached"))
        for session_id in sessions:
            await meet_again(running, device, host, session_id, at=stays.url)
        assert await states(running, sessions, "active")


async def test_hosts_are_told_before_sessions(database_url, tmp_path):
    async with two(database_url, tmp_path, **STANDS) as running:
        node = running.nodes[0]
        device, host = await running.couple()
        control = await host.connect(node.url)
        session_id, client, data = await met(running, device, host, at=node.url)
        node.node.drain.begin()
        assert await ends(control) == [LEAVES]
        await passes(client, data)
        assert await states(running, [session_id], "active")


async def test_both_sides_of_a_pair_leave_in_one_batch_and_lone_ones_with_the_first(database_url, tmp_path):
    async with two(database_url, tmp_path, **STANDS) as running:
        node, other = running.nodes
        device, host = await running.couple()
        await host.connect(other.url)
        pairs = [await met(running, device, host, at=node.url) for _ in range(3)]
        lone_device = await device.dial(await device.open(host.host_id), node.url)
        waiting = await met(running, device, host, at=node.url)
        waiting[1].cut()
        await waiting[2].expect(SideUnpaired)
        await waiting[2].ready()
        node.node.drain.begin()
        assert await ends(lone_device, waiting[2]) == [LEAVES] * 2
        await eventually(lambda: node.node.switchboard.sides == 4)
        gone = [pair for pair in pairs if not await still(pair)]
        assert len(gone) == 1, "one pair each batch"
        assert await ends(*gone[0][1:]) == [LEAVES] * 2
        for _, client, data in pairs:
            if (client, data) != gone[0][1:]:
                await passes(client, data)


async def still(pair):
    """Whether both sides are open; a half pair fails here."""
    _, client, data = pair
    open_ = [side.socket.close_code is None for side in (client, data)]
    if open_[0] != open_[1]:
        await eventually(lambda: client.socket.close_code == data.socket.close_code)
    return client.socket.close_code is None


async def test_during_the_notice_the_node_serves_whoever_comes_and_says_that_it_leaves(database_url, tmp_path):
    async with two(database_url, tmp_path, drain_notice="5 min") as running:
        node = running.nodes[0]
        device, host = await running.couple()
        await host.connect(node.url)
        node.node.drain.begin()
        await eventually(lambda: told(running, node.node, "draining"))
        assert (await ready(node.node)).status_code == 503
        stream = await device.open(host.host_id, url=node.url)
        await host.control.expect(HostSessionOpen)
        client, data = await device.dial(stream, node.url), await host.dial(stream.session_id, node.url)
        await client.expect(SidePaired)
        await data.expect(SidePaired)
        await passes(client, data)


async def told(running, node, state):
    return await row(running, node) == state


async def test_a_request_under_way_is_answered(database_url, tmp_path):
    async with two(database_url, tmp_path) as running:
        node = running.nodes[0].node
        reader, writer = await asyncio.open_connection(node.public.host, node.public.port)
        body = json.dumps({"device_id": "no id"}).encode()
        head = b"POST /api/v1/auth/challenge HTTP/1.1\r\nHost: relay.example.com\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body[:5])
        await writer.drain()
        async with httpx.AsyncClient(trust_env=False) as rest:  # by then the head of the other request is read
            await rest.get(f"http://{node.public}/api/v1/no-such-page")
        over = asyncio.create_task(drained(node))
        await eventually(lambda: node.drain.begun)
        writer.write(body[5:])
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"connection: close" in answer.lower()
        writer.close()
        assert (await over).left.nothing


# ---- no session ends ------------------------------------------------------------------------------------------------


async def test_a_side_alone_leaves_uncounted_and_its_row_stays(database_url, tmp_path):
    """Its time is over while the node drains: another node, or the sweep, decides about the row."""
    short = {"terminal": {"open_timeout": "1 s", "redial_after": "100 ms", "host_duplicate_probe_timeout": "100 ms"}}
    slow = {"drain_notice": "0", "drain_spread": "0", "drain_batch_gap": "20 ms"}
    async with cluster(database_url, tmp_path, nodes=2, server=slow, **short) as running:
        node, other = running.nodes
        device, host = await running.couple()
        await host.connect(other.url)
        stream = await device.open(host.host_id, url=node.url)
        client = await device.dial(stream, node.url)
        last = await drained(node.node)
        assert await ends(client) == [LEAVES]
        assert last.left == Left(0, 0, 0)
        again = await device.dial(stream, other.url)
        data = await host.dial(stream.session_id, other.url)
        await again.expect(SidePaired)
        await data.expect(SidePaired)


async def test_a_rolling_restart_of_all_nodes_ends_no_session(database_url, tmp_path):
    async with two(database_url, tmp_path) as running:
        device, host = await running.couple()
        control_at = running.nodes[0].url
        await host.connect(control_at)
        pairs = {}
        for node in running.nodes * 2:
            session_id, *sides = await met(running, device, host, at=node.url)
            pairs[session_id] = node.url, sides
        for leaves in list(running.nodes):
            (stays,) = running.others(leaves.url)
            assert (await drained(leaves.node)).left.nothing
            await leaves.stop()
            running.nodes.remove(leaves)
            if control_at == leaves.url:
                assert await ends(host.control) == [LEAVES]
                control_at = stays.url
                await host.connect(control_at)
            for session_id, (at, sides) in pairs.items():
                if at == leaves.url:
                    assert await ends(*sides) == [LEAVES] * 2
                    pairs[session_id] = stays.url, await meet_again(running, device, host, session_id, at=stays.url)
            running.nodes.append(await start(running.settings))
        for _, sides in pairs.values():
            await passes(*sides)
        assert await states(running, pairs, "active")


async def test_a_drain_needs_no_database(database_url, tmp_path):
    async with two(database_url, tmp_path) as running:
        node = running.nodes[0]
        device, host = await running.couple()
        control = await host.connect(node.url)
        session_id, client, data = await met(running, device, host, at=node.url)
        async with running.outage():
            last = await drained(node.node)
            assert await ends(control, client, data) == [LEAVES] * 3
            assert last.left == Left(0, 0, 0)
            assert (await ready(node.node)).json()["status"] == "draining"
        await eventually(lambda: told(running, node.node, "draining"))
        assert await states(running, [session_id], "active", "detached")
        await host.connect(running.nodes[1].url)
        await meet_again(running, device, host, session_id, at=running.nodes[1].url)


# ---- who asks -------------------------------------------------------------------------------------------------------


async def test_an_operator_asks_a_node_by_its_row(database_url, tmp_path):
    async with two(database_url, tmp_path) as running:
        leaves, stays = running.nodes
        _, host = await running.couple()
        control = await host.connect(leaves.url)
        await running.admin.nodes.drain(leaves.node.id)
        assert await ends(control) == [LEAVES]
        assert await row(running, leaves.node) == "draining"
        assert (await ready(stays.node)).status_code == 200


async def test_only_a_holder_of_the_keys_on_its_own_machine_can_ask(database_url, tmp_path):
    """Every account of the machine, and every web page that is looked at there, reaches the listener."""
    elsewhere = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
    async with (
        two(database_url, tmp_path) as running,
        httpx.AsyncClient(trust_env=False) as rest,
        httpx.AsyncClient(trust_env=False, transport=elsewhere) as other,
    ):
        node = running.nodes[0].node
        tokens = tokens_of_this_machine(running.settings)
        proof, probe = ({"Authorization": f"Bearer {tokens.mint(token)[0]}"} for token in (DrainToken(), ProbeToken(0)))
        add_key(tmp_path / "others", datetime.now(UTC), datetime.now(UTC))
        secrets = running.settings.secrets.model_copy(update={"signing_key_dir": tmp_path / "others"})
        foreign = tokens_of_this_machine(running.settings.model_copy(update={"secrets": secrets}))
        forged = {"Authorization": f"Bearer {foreign.mint(DrainToken())[0]}"}
        assert (await other.get(f"http://{node.internal}/readyz")).status_code == 200
        assert (await other.post(f"http://{node.internal}/drain", headers=proof)).status_code == 403
        for headers in ({}, probe, forged, {"Authorization": "Bearer"}, {"Authorization": "Bearer x"}):
            assert (await rest.post(f"http://{node.internal}/drain", headers=headers)).status_code == 403
        assert (await rest.get(f"http://{node.internal}/drain", headers=proof)).status_code == 405
        assert (await rest.post(f"http://{node.public}/drain", headers=proof)).status_code == 404
        assert not node.drain.begun
        lines = (await rest.post(f"http://{node.internal}/drain", headers=proof)).text.splitlines()
        assert json.loads(lines[-1]) == {"step": "over", "controls": 0, "sides": 0, "others": 0}


# ---- real processes -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def beside_a_process(database_url, tmp_path, **settings):
    """A node here, one in a process of its own, and a session that runs on that one."""
    async with cluster(database_url, tmp_path, nodes=1, cluster_mode="multi") as running:
        environment = {"BOTHY_CLUSTER__MODE": "multi", "BOTHY_SERVER__PUBLIC_ORIGINS": ORIGIN, **settings}
        with serving(database_url, tmp_path, "all", **environment) as process:
            await asyncio.to_thread(process.said, "ready")
            yield running, process


def drain_self(process, *words: str):
    """What the command says on the machine of this process."""
    command = [*BOTHY_SERVER, "node", "drain", "--self", *words]
    options = {"env": process.environment, "capture_output": True, "text": True, "timeout": 4 * PATIENCE_S}
    return subprocess.run(command, check=False, **options)


async def test_sigterm_is_a_drain_and_the_process_ends_well(database_url, tmp_path):
    """BR-31: nothing dies at once, nothing hangs, and hosts are asked to move first."""
    async with beside_a_process(database_url, tmp_path) as (running, process):
        device, host = await running.couple()
        control = await host.connect(process.url)
        pairs = [await met(running, device, host, at=process.url) for _ in range(8)]
        sessions = [session_id for session_id, _, _ in pairs]
        process.process.terminate()
        assert await ends(control) == [LEAVES]
        await host.connect(running.nodes[0].url)
        assert await ends(*(side for _, client, data in pairs for side in (client, data))) == [LEAVES] * 16
        assert await asyncio.to_thread(process.process.wait, PATIENCE_S) == 0
        steps = [json.loads(line) for line in process.rest()]
        assert [each["step"] for each in steps if each["event"] == "draining"][-1] == "over"
        assert {each["level"] for each in steps} == {"info"}
        for session_id in sessions:
            await meet_again(running, device, host, session_id, at=running.nodes[0].url)
        assert await states(running, sessions, "active")


async def test_a_second_sigterm_ends_it_at_once(database_url, tmp_path):
    slow = {"BOTHY_SERVER__DRAIN_NOTICE": "5 min", "BOTHY_TERMINAL__CLOSE_LINGER": "5 min"}
    async with beside_a_process(database_url, tmp_path, **slow) as (running, process):
        device, host = await running.couple()
        control = await host.connect(process.url)
        session_id, client, data = await met(running, device, host, at=process.url)
        data.socket.transport.pause_reading()  # it takes no close frame
        process.process.terminate()
        assert (await asyncio.to_thread(process.said, "draining"))["step"] == "notice"
        assert await asyncio.to_thread(process.takes_clients)
        process.process.terminate()
        assert await ends(control, client) == [LEAVES] * 2
        assert await asyncio.to_thread(process.process.wait, PATIENCE_S) == 0
        assert await states(running, [session_id], "active", "detached")
        data.cut()


async def test_a_drain_that_hangs_ends_in_its_time(database_url, tmp_path):
    short = {
        "BOTHY_SERVER__DRAIN_TIMEOUT": "2 s",
        "BOTHY_SERVER__DRAIN_SPREAD": "0",
        "BOTHY_SERVER__DRAIN_CONTROL_WAIT": "100 ms",
        "BOTHY_TERMINAL__CLOSE_LINGER": "5 min",
    }
    async with beside_a_process(database_url, tmp_path, **short) as (running, process):
        device, host = await running.couple()
        await host.connect(process.url)
        session_id, client, data = await met(running, device, host, at=process.url)
        data.socket.transport.pause_reading()
        asked = await asyncio.to_thread(drain_self, process)
        assert asked.returncode == 1
        assert asked.stdout.splitlines()[-1] == "over: 0 control connections, 1 sides, 0 other connections left"
        assert asked.stderr == (
            "bothy-server: the node ended before everything had left; clients dial again by themselves\n"
        )
        assert await ends(client) == [LEAVES]
        assert await asyncio.to_thread(process.process.wait, PATIENCE_S) == 0
        assert await states(running, [session_id], "active", "detached")
        data.cut()


@pytest.mark.parametrize("form", [["--json"], []])
async def test_the_node_of_this_machine_is_followed_to_its_end(database_url, tmp_path, form):
    async with beside_a_process(database_url, tmp_path) as (running, process):
        _, host = await running.couple()
        control = await host.connect(process.url)
        asked = await asyncio.to_thread(drain_self, process, *form)
        assert (asked.returncode, asked.stderr) == (0, "")
        if form:
            assert json.loads(asked.stdout) == {
                "step": "over",
                "controls": 0,
                "sides": 0,
                "others": 0,
                "drained": True,
            }
        else:
            assert asked.stdout.splitlines()[-1] == ("over: 0 control connections, 0 sides, 0 other connections left")
        assert await ends(control) == [LEAVES]
        assert await asyncio.to_thread(process.process.wait, PATIENCE_S) == 0


async def test_a_command_with_other_keys_is_told(database_url, tmp_path):
    async with beside_a_process(database_url, tmp_path) as (_, process):
        add_key(tmp_path / "others", datetime.now(UTC), datetime.now(UTC))
        process.environment["BOTHY_SECRETS__SIGNING_KEY_DIR"] = str(tmp_path / "others")
        refused = await asyncio.to_thread(drain_self, process)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "has another key store, or is on another machine" in refused.stderr
        assert process.get("/readyz").status_code == 200


async def test_an_answer_that_is_none_is_told(database_url, tmp_path):
    with serving(database_url, tmp_path, "worker") as process:
        await asyncio.to_thread(process.said, "ready")
        refused = await asyncio.to_thread(drain_self, process)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "is a worker, or a node that does not serve yet" in refused.stderr
        process.process.terminate()
        await asyncio.to_thread(process.process.wait, PATIENCE_S)
        nobody = await asyncio.to_thread(drain_self, process)
        assert (nobody.returncode, nobody.stdout) == (1, "")
        assert "nothing answers at server.internal_listen" in nobody.stderr
