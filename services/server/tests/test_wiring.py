"""What a node, a worker and the command line are made of, by mode and role; started for real."""

import asyncio
import importlib
import inspect
import json
import logging
import pkgutil
import socket
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx2 as httpx
import psycopg
import pytest

from bothy_kit.cluster import cluster, settings
from bothy_server import wiring
from bothy_server.cluster.adapters.local import LocalSignals
from bothy_server.cluster.adapters.postgres.signals import NotifySignals, notifier
from bothy_server.hosts.domain import signals as host_signals
from bothy_server.identity.adapters.keystore.store import add_key
from bothy_server.kernel.unit import Signal
from bothy_server.platform.database import SchemaError
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.serving import ListenError
from bothy_server.terminal.domain import signals as terminal_signals
from bothy_wire.frames import HostKeys, HostSessionOpen, SidePaired

PATIENCE_S = 15


def defined(*modules):
    """The classes that these modules define."""
    return {
        each
        for module in modules
        for _, each in inspect.getmembers(module, inspect.isclass)
        if each.__module__ == module.__name__
    }


def made(database_url, tmp_path, **groups):
    """Settings of one process, with a key to sign with."""
    if not (tmp_path / "keys").exists():
        now = datetime.now(UTC)
        add_key(tmp_path / "keys", now, now)
    return settings(database_url, tmp_path, **groups)


@asynccontextmanager
async def listening(database_url):
    """Another process on channel ``ephemeral``; gives what it heard until now."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("LISTEN ephemeral")

        async def heard():
            await connection.execute("SELECT pg_notify('ephemeral', 'marker')")
            found = []
            async for each in connection.notifies(timeout=PATIENCE_S):
                if each.payload == "marker":
                    break
                found.append(json.loads(each.payload))
            return found

        yield heard


async def until(holds):
    """Wait for something that nobody announces."""
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)


def own_tasks():
    return {task.get_name() for task in asyncio.all_tasks()}


async def get(address, path):
    async with httpx.AsyncClient(trust_env=False) as rest:
        return await rest.get(f"http://{address}{path}")


# ---- complete -------------------------------------------------------------------------------------------------------


def test_every_store_has_its_adapter():
    features = (
        importlib.import_module(f"bothy_server.{name}.app")
        for name in ("cluster", "events", "hosts", "identity", "terminal")
    )
    names = (each.name for app in features for each in pkgutil.iter_modules(app.__path__, f"{app.__name__}."))
    ports = {each for each in defined(*map(importlib.import_module, names)) if each.__name__.endswith("Store")}
    assert set(wiring.STORES) == ports
    for port, adapter in wiring.STORES.items():
        missing = [name for name in vars(port) if not name.startswith("_") and not hasattr(adapter, name)]
        assert missing == [], adapter


def test_every_signal_has_a_handler_and_a_spelling():
    kinds = {each for each in defined(host_signals, terminal_signals) if issubclass(each, Signal)}
    assert {*wiring.TERMINAL_SIGNALS, *wiring.HOST_SIGNALS} == kinds
    assert len({kind.kind for kind in kinds}) == len(kinds)


# ---- by mode and role -----------------------------------------------------------------------------------------------

EVERYWHERE = {"health", "internal_listener", "node_status"}
NODE = EVERYWHERE | {"dispatcher", "event_tail", "feeds", "keys", "presence", "public_listener", "tasks", "traffic"}
MULTI = {"signals", "terminal_ephemeral"}


@pytest.mark.parametrize(
    ("mode", "role", "parts"),
    [
        ("single", "api", NODE),
        ("single", "all", NODE | {"sweep"}),
        ("multi", "api", NODE | MULTI),
        ("multi", "all", NODE | MULTI | {"sweep"}),
    ],
)
async def test_terminal_signals_wiring(database_url, tmp_path, mode, role, parts):
    """In ``single`` nobody listens and nobody notifies; in ``multi`` every process that has sockets does."""
    before = own_tasks()
    async with cluster(database_url, tmp_path, nodes=1, cluster_mode=mode, server={"role": role}) as one:
        running = own_tasks() - before
        assert running & (NODE | MULTI | {"sweep"}) == parts
        listeners = await one.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s",
            "bothy-terminal-ephemeral",
        )
        assert listeners == [(1 if mode == "multi" else 0,)]
    assert own_tasks() - before <= {each for each in own_tasks() if each.startswith("Task-")}


@pytest.mark.parametrize("mode", ["single", "multi"])
async def test_terminal_signals_wiring_of_a_worker(database_url, tmp_path, mode):
    before = own_tasks()
    async with Lifecycle() as parts:
        address = await wiring.start_worker(made(database_url, tmp_path, cluster={"mode": mode}), parts)
        assert (own_tasks() - before) & (NODE | MULTI | {"sweep"}) == EVERYWHERE | {"event_tail", "sweep"}
        for path in ("/livez", "/readyz", "/metrics"):
            assert (await get(address, path)).status_code == 200


class Ordered(Lifecycle):
    """Remembers the parts in the order of their start; they stop in reverse."""

    def __init__(self):
        super().__init__()
        self.names = []

    async def start(self, name, part):
        self.names.append(name)
        return await super().start(name, part)

    def own(self, name, work):
        self.names.append(name)
        super().own(name, work)


@pytest.mark.parametrize("role", ["api", "all"])
async def test_the_listener_stops_after_the_sockets_are_closed(database_url, tmp_path, role):
    """``docs/spec/cluster.md``, R5."""
    chosen = made(database_url, tmp_path, cluster={"mode": "multi"}, server={"role": role})
    async with Ordered() as parts:
        await wiring.start_node(chosen, parts)
    assert len(set(parts.names)) == len(parts.names)
    order = ["signals", "terminal_ephemeral", "event_tail", "public_listener", "sockets", "node"]
    assert [name for name in parts.names if name in order] == order


async def test_every_process_enters_the_table_of_nodes_and_leaves_it(database_url, tmp_path):
    for role, start_process in (("api", wiring.start_node), ("worker", wiring.start_worker)):
        async with Lifecycle() as parts:
            await start_process(made(database_url, tmp_path, server={"role": role}), parts)
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        rows = await connection.execute(
            "SELECT role, state, origin IS NOT NULL, cardinality(key_ids), signs_with IS NOT NULL"
            " FROM cluster_nodes JOIN node_status USING (node_id) ORDER BY role"
        )
        assert await rows.fetchall() == [("api", "leaving", True, 1, True), ("worker", "leaving", False, 0, False)]
        events = await connection.execute("SELECT type FROM event_log")
        assert await events.fetchall() == [("node.changed",)] * 4


# ---- signals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "transport"), [("single", LocalSignals), ("multi", NotifySignals)])
async def test_terminal_signals_wiring_of_what_goes_out(database_url, tmp_path, mode, transport):
    async with wiring.foundation(made(database_url, tmp_path, cluster={"mode": mode})) as base:
        assert isinstance(wiring.outbound(base, notifier(base.database)), transport)


async def test_a_worker_ends_sessions_and_stages_no_host_close(database_url, tmp_path):
    """An end reaches every node by the event log, also one that no node decided."""
    async with cluster(database_url, tmp_path, nodes=1, cluster_mode="multi", server={"role": "api"}) as one:
        device, host = await one.couple()
        control = await host.connect()
        stream = await device.open(host.host_id)
        client = await device.dial(stream)
        await control.expect(HostSessionOpen)
        await one.sql("UPDATE terminal_sessions SET expires_at = now() WHERE id = %s", stream.session_id)
        async with listening(database_url) as heard, Lifecycle() as parts:
            await wiring.start_worker(made(database_url, tmp_path, cluster={"mode": "multi"}), parts)
            closed = await client.closed()
            kinds = {each.get("kind") for each in await heard()}
        assert (closed.code, closed.reason) == (4100, "max_duration")
        assert "terminal.host_close" not in kinds


# ---- what a node does by itself -------------------------------------------------------------------------------------


async def test_a_new_key_is_told_to_the_hosts_and_a_damaged_one_changes_nothing(database_url, tmp_path, caplog):
    quick = {"reload_interval": "20ms"}
    async with cluster(database_url, tmp_path, nodes=1, secrets=quick) as one:
        _, host = await one.couple()
        control = await host.connect()
        now = datetime.now(UTC)
        added = add_key(tmp_path / "keys", now, now)
        keys = (await control.expect(HostKeys)).jwks["keys"]
        assert added.kid in {key["kid"] for key in keys}
        (tmp_path / "keys" / "damaged.json").write_text("{")
        await until(lambda: said(caplog, "key store unreadable, the keys in use stay"))
        published = (await get(one.nodes[0].node.public, "/.well-known/jwks.json")).json()
        assert {key["kid"] for key in published["keys"]} == {key["kid"] for key in keys}


async def said(caplog, words):
    return words in caplog.messages


async def test_a_clock_that_differs_is_reported_and_changes_nothing(database_url, tmp_path, caplog):
    strict = {"status_interval": "20ms", "clock_warn": 1e-9}
    async with cluster(database_url, tmp_path, nodes=1, cluster=strict) as one:
        await until(lambda: said(caplog, "clock differs from the database"))
        answer = await get(one.nodes[0].node.internal, "/readyz")
    assert answer.status_code == 200
    assert "from the database" in answer.json()["checks"]["clock"]


async def test_the_metrics_of_a_node(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1, cluster_mode="multi") as one:
        device, host = await one.couple()
        await host.connect()
        await device.open(host.host_id)
        text = (await get(one.nodes[0].node.internal, "/metrics")).text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert values["bothy_terminal_sessions_opened"] == "1.0"
    assert values["bothy_hosts_control_connections"] == "1.0"
    assert values["bothy_hosts_connected"] == "1.0"
    for name in (
        "bothy_terminal_relay_sides",
        "bothy_terminal_relay_pairs",
        "bothy_terminal_relay_forwarded_bytes",
        "bothy_cluster_signals_malformed",
        "bothy_cluster_listener_echo_age_seconds",
        'bothy_terminal_relay_unpaired_total{bothy_terminal_side="client"}',
    ):
        assert name in values, text


async def test_a_node_that_leaves_tells_every_socket_and_leaves_nothing(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1) as one:
        device, host = await one.couple()
        control = await host.connect()
        stream = await device.open(host.host_id)
        client, data = await device.dial(stream), await host.dial(stream.session_id)
        await client.expect(SidePaired)
        leaving = asyncio.create_task(one.nodes.pop().stop())
        for socket_ in (control, client, data):
            closed = await socket_.closed()
            assert (closed.code, closed.reason) == (1012, "the node is leaving")
        await leaving
        connections = "SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        await until(lambda: only_the_command_line(one, connections))
        ((state,),) = await one.sql("SELECT state FROM terminal_sessions WHERE id = %s", stream.session_id)
        assert state == "opening", "no session ends because a node leaves"


async def only_the_command_line(one, connections):
    return {name for (name,) in await one.sql(connections)} <= {"bothy-server"}


# ---- what does not start --------------------------------------------------------------------------------------------


async def test_a_database_without_our_tables_starts_nothing(postgres, tmp_path):
    name = await asyncio.to_thread(postgres.create_database)
    before = own_tasks()
    with pytest.raises(SchemaError, match="bothy-server migrate"):
        await start(made(postgres.url(name), tmp_path))
    assert own_tasks() == before
    await asyncio.to_thread(postgres.drop_database, name)


async def test_an_address_that_is_taken_starts_nothing(database_url, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ListenError, match=f"{address} cannot be bound"):
            await start(made(database_url, tmp_path, server={"listen": address}))
    assert not own_tasks() & (NODE | MULTI | {"sweep"})


async def start(chosen):
    async with Lifecycle() as parts:
        await wiring.start_node(chosen, parts)
