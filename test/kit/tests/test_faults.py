"""Spoilt nodes leave nothing behind: no task, no socket, no backend."""

import psycopg
import pytest

from bothy_kit.cluster import cluster
from bothy_kit.eventually import eventually, footprint
from bothy_kit.faults import start_behind_links
from bothy_wire.frames import SidePaired


def backends(database_url):
    """The connections of nodes to this database."""
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()[0]


@pytest.mark.parametrize(
    ("fault", "healed"),
    [
        ("kill", False),
        *(
            (fault, healed)
            for fault in ("pause", "cut", "deafen", "drop_signals", "lose_database")
            for healed in (False, True)
        ),
    ],
)
async def test_a_fault_leaves_no_task_no_socket_and_no_backend(database_url, tmp_path, fault, healed):
    """Whether the nodes end under it or after it was healed. A port that listens is an open file of this process, too."""
    before = footprint()
    async with cluster(database_url, tmp_path, nodes=2, start=start_behind_links) as two:
        device = await two.device(url=two.nodes[0].url)
        host = await two.host()
        await host.connect(two.nodes[1].url)
        stream = await device.open(host.host_id)
        client = await device.dial(stream, two.nodes[1].url)
        data = await host.dial(stream.session_id, two.nodes[1].url)
        await client.expect(SidePaired)
        await data.expect(SidePaired)
        done = getattr(two.nodes[1], fault)()
        if done is not None:
            await done
        if fault in {"cut", "kill"}:
            assert ((await client.closed()).code, (await data.closed()).code) == (1006, 1006)
        else:
            await data.send(b"alive")
        if healed:
            await two.nodes[1].heal()
        if fault in {"deafen", "drop_signals", "lose_database"} or (fault == "pause" and healed):
            assert await client.receive() == b"alive"
        await client.close()
        await data.close()
    await eventually(lambda: backends(database_url) == 0)  # a backend that was cut sees it a moment later
    await eventually(lambda: footprint() == before)
