"""A second control connection: an honest host that dialled again, or a copied key, on different nodes or the same."""

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE

import pytest

from bothy_kit import processes
from bothy_kit.cluster import ORIGIN, cluster, start
from bothy_wire.frames import HostSessionOpen, SidePaired

PROBE_S = 1.0
SHORT = {"host_duplicate_probe_timeout": "1s"}


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2, terminal=SHORT) as running:
        yield running


async def state(device, host):
    shown = (await device.rest("GET", f"/hosts/{host.host_id}")).body
    return shown["state"], shown["disabled_reason"]


async def audited(two, host):
    found = await two.sql(
        "SELECT code FROM audit_log WHERE action = 'host.connect' AND host_id = %s ORDER BY position", host.host_id
    )
    return [code for (code,) in found]


async def gathered(one, other):
    return [each.code for each in await asyncio.gather(one.closed(), other.closed())]


async def older_answers(two, where):
    """Both leave with 4112, and everything that belongs to the verdict is there, once."""
    device, host = await two.device(url=two.nodes[0].url), await two.host()
    older = await host.connect(two.nodes[0].url)
    stream = await device.open(host.host_id)
    await older.expect(HostSessionOpen)
    url = two.url_of(stream.session_id, "device")
    client, data = await device.dial(stream, url), await host.dial(stream.session_id, url)
    await client.expect(SidePaired)

    newer = await host.copy().connect(where)

    assert await gathered(older, newer) == [4112, 4112]
    assert (await client.closed()).reason == "host_disabled"
    assert (await data.closed()).code == 4100
    assert await state(device, host) == ("disabled", "duplicate_connection")
    assert (await device.state(stream.session_id))["close_reason"] == "host_disabled"
    assert await audited(two, host) == ["duplicate_connection"]
    assert (await (await host.identify(two.nodes[1].url)).closed()).code == 4112


async def older_silent(two, where):
    """The older one closes 4009, the newer one stays and serves."""
    device, host = await two.device(url=two.nodes[0].url), await two.host()
    older = await host.connect(two.nodes[0].url)
    older.fall_silent()
    newer = await host.connect_again(where)
    stream = await device.open(host.host_id)
    assert (await newer.expect(HostSessionOpen)).session_id == stream.session_id
    older.listen_again()
    assert (await older.closed()).code == 4009
    await newer.heartbeat()
    assert await state(device, host) == ("active", None)
    await newer.close()
    await unavailable(device, host)


async def probation_defers_open(two, where):
    """Nothing reaches the newer one before the end of its probation, and nothing ever while the older one answers."""
    device, host = await two.device(url=two.nodes[0].url), await two.host()
    newer = await host.connect(where)
    at = asyncio.get_running_loop().time()
    stream = await device.open(host.host_id)
    assert (await newer.expect(HostSessionOpen)).session_id == stream.session_id
    assert asyncio.get_running_loop().time() - at >= 2 * PROBE_S - 0.1, "counted from the first announcement"

    copied = await host.copy().connect(two.others(where)[0].url)
    await device.try_open(host.host_id)
    assert await gathered(newer, copied) == [4112, 4112]
    assert not [each for each in copied.kept if isinstance(each, HostSessionOpen)]


async def announcement_lost(two, where):
    """The older one's node hears nothing of the newer one; the next heartbeat brings it up."""
    device, host = await two.device(url=two.nodes[0].url), await two.host()
    older = await host.connect(two.nodes[0].url)
    heard = two.nodes[0].node.presence.heard
    two.nodes[0].node.presence.heard = lambda _: False
    newer = await host.copy().connect(where)
    await newer.heartbeat()
    stream = await device.open(host.host_id)
    assert (await newer.expect(HostSessionOpen)).session_id == stream.session_id, "its probation passed unseen"
    assert await state(device, host) == ("active", None)
    two.nodes[0].node.presence.heard = heard
    await older.heartbeat()
    assert await gathered(older, newer) == [4112, 4112]


@pytest.mark.parametrize("case", [older_answers, older_silent, probation_defers_open, announcement_lost])
async def test_cross_node_duplicate_control_connection(two, case):
    await case(two, two.nodes[1].url)


@pytest.mark.parametrize("case", [older_answers, older_silent])
async def test_duplicate_control_connection_on_one_node_of_several(two, case):
    await case(two, two.nodes[0].url)


async def test_a_host_that_was_disabled_for_a_copy_is_usable_again_after_pairing(two):
    device, host = await two.device(), await two.host()
    older = await host.connect(two.nodes[0].url)
    newer = await host.copy().connect(two.nodes[1].url)
    assert await gathered(older, newer) == [4112, 4112]

    assert (await host.pair(await two.code(host.host_id))).status_code == 201
    control = await host.connect(two.nodes[1].url)

    assert await state(device, host) == ("active", None)
    stream = await device.open(host.host_id)
    assert (await control.expect(HostSessionOpen)).session_id == stream.session_id


async def test_a_join_value_that_was_passed_disables_on_any_node(two):
    """Copies that never overlap: the second one to come back is behind."""
    device, host = await two.device(), await two.host()
    copy = host.copy()
    await (await host.connect(two.nodes[0].url)).close()
    assert (await (await copy.identify(two.nodes[1].url)).closed()).code == 4112
    assert await state(device, host) == ("disabled", "duplicate_connection")
    assert await audited(two, host) == ["duplicate_connection"]


async def test_fifty_times_a_host_changes_the_node_and_nobody_is_disabled(database_url, tmp_path):
    """The node of the older connection notices late, and its end may come behind all that the newer one does."""
    short = {"host_duplicate_probe_timeout": "30ms", "presence_flush_interval": "5ms"}
    async with cluster(database_url, tmp_path, nodes=2, terminal=short) as two:
        device, host = await two.device(), await two.host()
        late = []
        for turn in range(50):
            url = two.nodes[turn % 2].url
            if host.control is not None and turn % 3:
                host.control.fall_silent()
                late.append(host.control)
            elif host.control is not None:
                host.control.cut()
            control = await host.connect_again(url)
            await control.heartbeat()
            if turn % 10 == 9:
                await device.open(host.host_id)
                await control.expect(HostSessionOpen)
        await device.open(host.host_id)
        await control.expect(HostSessionOpen)
        for each in late:
            each.listen_again()
            assert (await each.closed()).code == 4009
        assert await state(device, host) == ("active", None)
        assert await audited(two, host) == []
        assert (await device.rest("GET", f"/hosts/{host.host_id}")).body["presence"] == "online"


# ---- presence -------------------------------------------------------------------------------------------------------


async def unavailable(device, host):
    """Wait until an open is refused; a host that just left may be thought connected for a moment."""
    async with asyncio.timeout(10):
        while (answer := await device.try_open(host.host_id)).status == 201:  # noqa: ASYNC110 - the node tells nobody
            await asyncio.sleep(0.05)
    assert (answer.status, answer.code) == (409, "host_unavailable")


async def available(device, host):
    async with asyncio.timeout(10):
        while (answer := await device.try_open(host.host_id)).status == 409:
            assert answer.code == "host_unavailable"
            await asyncio.sleep(0.05)
    assert answer.status == 201


async def test_cross_node_host_unavailable_parity(two):
    here, host = await two.device(url=two.nodes[0].url), await two.host()
    there = await two.another_device("Robin", url=two.nodes[1].url)
    host.profiles = {"shell": ["alex-shell"]}
    for device in (here, there):
        await unavailable(device, host)
    control = await host.connect(two.nodes[1].url)
    for device in (here, there):
        await available(device, host)
    await control.close()
    for device in (here, there):
        await unavailable(device, host)


async def test_a_node_that_starts_knows_a_host_after_its_next_heartbeat(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=1, cluster_mode="multi") as running:
        await running.device("Robin")
        host = await running.host()
        control = await host.connect(running.nodes[0].url)
        running.nodes.append(await start(running.settings))
        device = await running.another_device("Robin", url=running.nodes[1].url)
        await control.heartbeat()
        await available(device, host)


@asynccontextmanager
async def node_to_crash(one, window):
    """One more node of this cluster as a process of its own, and where it listens."""
    values = {
        "DATABASE__URL": one.settings.database.url.get_secret_value(),
        "SECRETS__SIGNING_KEY_DIR": str(one.settings.secrets.signing_key_dir),
        "SERVER__LISTEN": "127.0.0.1:0",
        "SERVER__INTERNAL_LISTEN": "127.0.0.1:0",
        "SERVER__PUBLIC_ORIGINS": ORIGIN,
        "CLUSTER__MODE": "multi",
        **{f"TERMINAL__{name.upper()}": str(value) for name, value in window.items()},
    }
    env = {"PATH": os.environ["PATH"], **{f"BOTHY_{name}": value for name, value in values.items()}}
    process = processes.start([Path(sys.executable).with_name("bothy-server"), "serve"], env=env, output=PIPE)
    try:
        async with asyncio.timeout(20):
            while (line := json.loads(await asyncio.to_thread(process.stdout.readline))).get("public") is None:
                continue
        yield f"http://{line['public']}", process
    finally:
        processes.stop(process, signal.SIGKILL)
        process.stdout.close()


async def test_a_host_of_a_node_that_crashed_is_thought_connected_for_a_window(database_url, tmp_path):
    window = {"host_heartbeat_interval": "1s", "host_heartbeat_miss_limit": 2, "open_timeout": "1500ms"}
    async with cluster(database_url, tmp_path, nodes=1, cluster_mode="multi", terminal=window) as one:
        device, host = await one.device(), await one.host()
        async with node_to_crash(one, window) as (url, process):
            await host.connect(url)
            await available(device, host)
            process.kill()
            opened = await device.open(host.host_id)
            await unavailable(device, host)
        async with asyncio.timeout(10):
            while (row := await device.state(opened.session_id))["state"] != "closed":  # noqa: ASYNC110 - see above
                await asyncio.sleep(0.05)
        assert (row["close_reason"], row["close_detail"]) == ("open_failed", "open_timeout")
