"""Which parts a process has, by mode and role, and in which order they stop."""

from datetime import UTC, datetime

import psycopg
import pytest

from bothy_kit.cluster import settings
from bothy_server import wiring
from bothy_server.cluster.adapters.local import LocalSignals
from bothy_server.cluster.adapters.postgres.signals import NotifySignals, notifier
from bothy_server.identity.adapters.keystore.store import add_key
from bothy_server.platform.lifecycle import Lifecycle


class Recorded(Lifecycle):
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


@pytest.fixture
def made(database_url, tmp_path):
    now = datetime.now(UTC)
    add_key(tmp_path / "keys", now, now)

    def make(mode, role):
        laid_over = {"listen": "127.0.0.1:0", "internal_listen": "127.0.0.1:0", "role": role}
        return settings(database_url, tmp_path, cluster={"mode": mode}, server=laid_over)

    return make


async def parts_of(made):
    start = wiring.start_worker if made.server.role == "worker" else wiring.start_node
    async with Recorded() as parts:
        await start(made, parts)
        return parts.names


@pytest.mark.parametrize("role", ["api", "all"])
async def test_terminal_signals_wiring_of_a_node_among_several(made, role):
    names = await parts_of(made("multi", role))
    assert names.count("signals") == names.count("terminal_ephemeral") == names.count("event_tail") == 1
    # It stops after the sockets are closed (docs/spec/cluster.md, R5).
    assert names.index("terminal_ephemeral") < names.index("sockets")
    assert ("sweep" in names) == (role == "all")


@pytest.mark.parametrize("role", ["api", "all"])
async def test_terminal_signals_wiring_of_a_node_alone(made, role):
    names = await parts_of(made("single", role))
    assert not {"signals", "terminal_ephemeral"} & set(names)
    assert {"event_tail", "dispatcher"} <= set(names)


@pytest.mark.parametrize("mode", ["single", "multi"])
async def test_terminal_signals_wiring_of_a_worker(made, mode):
    names = await parts_of(made(mode, "worker"))
    assert not {"terminal_ephemeral", "event_tail", "public_listener", "sockets"} & set(names)
    assert "sweep" in names


@pytest.mark.parametrize(("mode", "transport"), [("single", LocalSignals), ("multi", NotifySignals)])
async def test_terminal_signals_wiring_of_what_goes_out(made, mode, transport):
    async with wiring.foundation(made(mode, "worker")) as base:
        assert isinstance(wiring._outbound(base, notifier(base.database)), transport)


async def test_every_process_enters_the_table_of_nodes_and_leaves_it(made, database_url):
    for role in ("api", "worker"):
        await parts_of(made("multi", role))
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT role, state, origin IS NOT NULL, cardinality(key_ids), signs_with IS NOT NULL"
            " FROM cluster_nodes JOIN node_status USING (node_id) ORDER BY role"
        ).fetchall()
        events = connection.execute("SELECT type FROM event_log").fetchall()
    assert rows == [("api", "leaving", True, 1, True), ("worker", "leaving", False, 0, False)]
    assert events == [("node.changed",)] * 4
