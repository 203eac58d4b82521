"""Three nodes: which one ends a row does not show, one dies, and reads that come late admit nobody they should not."""

import asyncio
import functools

import httpx2 as httpx
import psycopg
import pytest

from bothy_kit import cluster as kit
from bothy_kit.cluster import cluster
from bothy_kit.eventually import eventually
from bothy_kit.faults import start_behind_links
from bothy_kit.sockets import PATIENCE_S
from bothy_server.terminal.adapters.postgres.sessions import PostgresSessionStore
from bothy_server.terminal.app.ports import SessionStore
from bothy_server.wiring import core
from bothy_wire.frames import (
    HostIdentified,
    HostSessionClose,
    HostSessionOpen,
    HostSessionRecorded,
    ReportedSession,
    SideAccepted,
    SidePaired,
)

SHORT = {"open_timeout": "2 s", "redial_after": "50 ms", "sweep_interval": "1 h"}


def row(database_url, session_id):
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT state, close_reason, close_detail FROM terminal_sessions WHERE id = %s", [session_id]
        ).fetchone()


def ends(database_url, session_id):
    with psycopg.connect(database_url) as connection:
        query = "SELECT count(*) FROM audit_log WHERE session_id = %s AND action = 'terminal.terminate'"
        return connection.execute(query, [session_id]).fetchone()[0]


async def counted(running):
    """What each node counted: lone devices, lone hosts."""
    counts = []
    async with httpx.AsyncClient(trust_env=False) as internal:
        for node in running.nodes:
            lines = (await internal.get(f"http://{node.node.internal}/metrics")).text.splitlines()
            name = 'bothy_terminal_relay_unpaired_total{bothy_terminal_side="%s"'
            counts.append(
                tuple(
                    sum(float(line.split()[-1]) for line in lines if line.startswith(name % side))
                    for side in ("client", "host")
                )
            )
    return counts


@pytest.mark.parametrize("ender", ["device", "host", "neither"])
async def test_codes_and_counts_do_not_depend_on_who_ends_the_row(database_url, tmp_path, ender):
    """The device's node is 0, the host's is 1. Who is not to end the row gets 30 s instead of two."""
    patient = {"device": (1, 2), "host": (0, 2), "neither": (0, 1)}[ender]
    made = iter(range(3))

    async def start(settings):
        if next(made) in patient:
            longer = settings.terminal.model_copy(update={"open_timeout": 30.0})
            settings = settings.model_copy(update={"terminal": longer})
        return await start_behind_links(settings)

    async with cluster(database_url, tmp_path, nodes=3, start=start, terminal=SHORT) as three:
        three.mode = "split"
        device = await three.device(url=three.nodes[2].url)
        host = await three.host(url=three.nodes[2].url)
        await host.connect()
        stream = await device.open(host.host_id)
        client = await device.dial(stream, three.url_of(stream.session_id, "device"))
        data = await host.dial(stream.session_id, three.url_of(stream.session_id, "host"))

        assert [(await side.closed()).code for side in (client, data)] == [4102, 4102]

        assert await counted(three) == [(1, 0), (0, 1), (0, 0)]
        await eventually(lambda: row(database_url, stream.session_id) == ("closed", "open_failed", "open_timeout"))
        assert ends(database_url, stream.session_id) == 1


async def test_sides_of_a_node_that_dies_meet_on_another(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=3, start=start_behind_links) as three:
        relay, second, third = three.nodes
        device = await three.device(url=second.url)
        host = await three.host(url=third.url)
        await host.connect()
        stream = await device.open(host.host_id)
        await host.control.expect(HostSessionOpen)
        client, data = await device.dial(stream, relay.url), await host.dial(stream.session_id, relay.url)
        await client.expect(SidePaired)
        await data.expect(SidePaired)
        await host.started(stream.session_id)
        await host.control.expect(HostSessionRecorded)

        await relay.kill()

        assert [(await side.closed()).code for side in (client, data)] == [1006, 1006]
        assert row(database_url, stream.session_id) == ("active", None, None)  # it wrote nothing
        await report_again(
            host, third.url, ReportedSession(session_id=stream.session_id, phase="running", attached=False)
        )
        await eventually(lambda: row(database_url, stream.session_id) == ("detached", None, None))
        data = await host.dial(stream.session_id, second.url)
        client = await device.dial(await device.attach(stream.session_id), second.url)
        await client.expect(SidePaired)
        await data.expect(SidePaired)
        await data.send(b"on another node")
        assert await client.receive() == b"on another node"
        assert row(database_url, stream.session_id) == ("active", None, None)


async def report_again(host, url, session):
    """The control connection is made anew; the report tells that the session runs."""
    await host.control.close()
    control = await host.identify(url)
    host.join = (await control.expect(HostIdentified)).join_offered
    await control.send(host.report(session))
    await control.handled()
    host.control = control


# ---- reads that come late -------------------------------------------------------------------------------------------


class Gate:
    """Holds back the answer of one read of rows on one node."""

    def __init__(self) -> None:
        self.armed = False
        self._held = asyncio.Event()
        self._open = asyncio.Event()

    def hold_next(self):
        self.armed = True

    async def reached(self):
        async with asyncio.timeout(PATIENCE_S):
            await self._held.wait()

    def release(self):
        self._open.set()

    async def passed(self):
        if self.armed:
            self.armed = False
            self._held.set()
            await self._open.wait()


class SlowStore(PostgresSessionStore):
    """Reads at once, and answers when its gate lets it."""

    def __init__(self, gate, connection) -> None:
        super().__init__(connection)
        self._gate = gate

    async def rows(self, ids):
        found = await super().rows(ids)
        if ids:
            await self._gate.passed()
        return found


@pytest.fixture
async def slow(database_url, tmp_path, monkeypatch):
    """Three nodes, and the gate of each."""
    gates = []

    async def start(settings):
        gates.append(Gate())
        store = functools.partial(SlowStore, gates[-1])
        monkeypatch.setattr(core, "STORES", {**core.STORES, SessionStore: store})
        return await kit.start(settings)

    async with cluster(database_url, tmp_path, nodes=3, start=start) as three:
        yield three, gates
        for gate in gates:
            gate.release()


async def opened(three):
    """An open session of a host on node 1, whose sides may meet on node 2."""
    device = await three.device(url=three.nodes[0].url)
    host = await three.host(url=three.nodes[1].url)
    await host.connect()
    stream = await device.open(host.host_id)
    await host.control.expect(HostSessionOpen)
    await eventually(lambda: three.nodes[2].node.switchboard.has(stream.session_id))
    return device, host, stream


async def test_a_side_whose_read_is_under_way_goes_with_its_session(slow):
    three, gates = slow
    device, host, stream = await opened(three)
    gates[2].hold_next()
    client = await device.identify(stream, three.nodes[2].url)
    await gates[2].reached()
    await device.rest("POST", f"/terminal/sessions/{stream.session_id}/close", {})
    assert (await client.closed()).reason == "client_closed"
    gates[2].release()
    await eventually(lambda: not three.nodes[2].node.switchboard.has(stream.session_id))
    assert (await (await host.identify_data(stream.session_id, three.nodes[2].url)).closed()).code == 4100


@pytest.mark.parametrize("kind", ["device", "host"])
async def test_of_two_sides_the_one_registered_later_stays_whichever_read_returns_first(slow, kind):
    three, gates = slow
    device, host, stream = await opened(three)
    at = three.nodes[2].url

    def identify():
        return device.identify(stream, at) if kind == "device" else host.identify_data(stream.session_id, at)

    gates[2].hold_next()
    first = await identify()
    await gates[2].reached()
    second = await identify()
    await second.expect(SideAccepted)
    counterpart = await (host.dial(stream.session_id, at) if kind == "device" else device.dial(stream, at))
    await counterpart.expect(SidePaired)
    await second.expect(SidePaired)
    gates[2].release()
    assert (await first.closed()).code == (4103 if kind == "device" else 1000)
    await second.send(b"stays")
    assert await counterpart.receive() == b"stays"


async def test_an_older_attach_is_replaced_however_late_its_read_comes(slow):
    three, gates = slow
    device, host, stream = await opened(three)
    at = three.nodes[2].url
    gates[2].hold_next()
    older = await device.identify(stream, at)
    await gates[2].reached()
    newer = await device.dial(await device.attach(stream.session_id), at)
    gates[2].release()
    assert (await older.closed()).code == 4103
    data = await host.dial(stream.session_id, at)
    await newer.expect(SidePaired)
    await data.expect(SidePaired)


async def test_a_host_is_told_of_an_end_last_however_late_the_read_of_its_opening_comes(slow):
    three, gates = slow
    device = await three.device(url=three.nodes[0].url)
    host = await three.host(url=three.nodes[1].url)
    control = await host.connect()
    gates[1].hold_next()
    stream = await device.open(host.host_id)
    await gates[1].reached()
    await device.rest("POST", f"/terminal/sessions/{stream.session_id}/close", {})
    told = asyncio.create_task(control.expect(HostSessionClose))
    await asyncio.wait([told], timeout=0.3)  # a node that does not keep the order tells it now
    gates[1].release()
    assert (await told).session_id == stream.session_id
    before = sum(isinstance(frame, HostSessionOpen) for frame in control.kept)
    await control.handled()
    assert sum(isinstance(frame, HostSessionOpen) for frame in control.kept) == before
    await eventually(lambda: not three.nodes[1].node.switchboard.has(stream.session_id))
