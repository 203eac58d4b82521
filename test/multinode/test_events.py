"""Events on two nodes: who may see it is told, once and in order, whichever node they ask and however often they come again."""

from __future__ import annotations

import pytest

from bothy_kit.cluster import Cluster, cluster
from bothy_kit.event_reader import Block, EventReader, reading
from bothy_kit.eventually import eventually

SHORT = {"presence_interval": "20ms", "comment_interval": "50ms"}


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2, events=SHORT) as running:
        yield running


async def begun(reader: EventReader) -> Block:
    """A stream that begins anew; its first presence."""
    assert reader.response.status_code == 200
    assert (await reader.next()).event == "reset"
    return await reader.next()


def logged(blocks: list[Block]) -> list[Block]:
    """Those of the event log."""
    return [each for each in blocks if each.id is not None and each.event != "reset"]


async def test_a_stream_begins_with_a_reset_and_all_presence(two: Cluster):
    robin, host = await two.couple()
    absent = await two.host("lab-2", (await robin.rest("GET", "/me")).body["person_name"])
    await host.connect(two.nodes[1].url)
    await eventually(lambda: two.nodes[0].node.presence.connected(host.host_id))
    async with reading(robin) as reader:
        head = reader.response.headers
        assert head["content-type"] == "text/event-stream; charset=utf-8"
        assert head["x-accel-buffering"] == "no"
        assert "no-store" in head["cache-control"]
        reset, presence = await reader.next(), await reader.next()
        assert (reset.event, reset.data, reader.retry_ms) == ("reset", {}, 2000)
        assert int(reset.id) > 0
        assert presence == Block("presence", {"all": True, "hosts": {str(host.host_id): "online"}}, None)
        assert str(absent.host_id) not in presence.data["hosts"]


async def test_presence_changes_are_told_on_every_node(two: Cluster):
    robin, host = await two.couple()
    stranger = await two.device("Sam")
    async with reading(robin) as here, reading(robin, url=two.nodes[1].url) as there, reading(stranger) as strange:
        for each in (here, there, strange):
            assert (await begun(each)).data == {"all": True, "hosts": {}}
        control = await host.connect(two.nodes[1].url)
        online = {"all": False, "hosts": {str(host.host_id): "online"}}
        for each in (here, there):
            assert (await each.until("presence"))[-1].data == online
        await control.socket.close()
        offline = {"all": False, "hosts": {str(host.host_id): "offline"}}
        for each in (here, there):
            assert (await each.until("presence"))[-1].data == offline
        sam_host = await two.host("sams", "Sam")
        told = await strange.until("host.updated")
        assert {each.event for each in told} == {"host.updated"}, "nothing of Robin's host"
        assert told[-1].data["host_id"] == str(sam_host.host_id)
