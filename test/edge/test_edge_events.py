"""What the console needs of the edge: events come at once and go on at another node; a page's paths lead nowhere else."""

from __future__ import annotations

import asyncio
import re

import httpx2 as httpx
import pytest

from bothy_kit.cluster import cluster
from bothy_kit.edge_client import ask, connection
from bothy_kit.event_reader import Block, reading
from bothy_kit.nginx import SHIPPED, edge
from bothy_server.platform.settings import Events


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2) as running:
        yield running


def behind(two):
    """The edge before these nodes."""
    return edge([(f"api-{at}", "127.0.0.1", each.node.public.port) for at, each in enumerate(two.nodes, 1)])


async def readers(running):
    """How many a node counts."""
    async with httpx.AsyncClient(trust_env=False) as client:
        metrics = (await client.get(f"http://{running.node.internal}/metrics")).text
    return float(re.search(r"^bothy_events_feeds (\S+)", metrics, re.MULTILINE)[1])


async def test_events_come_at_once_and_go_on_at_the_other_node(two):
    robin, host = await two.couple()
    with behind(two) as url:
        async with reading(robin, url=url) as reader:
            assert [(await reader.next()).event for _ in range(2)] == ["reset", "presence"]
            assert (await robin.manage("/rename", {"name": "lab-7"}, host_id=host.host_id)).status == 200
            told = await reader.next()  # a line that is kept back would only come with many others
            assert (told.event, told.data["host_id"]) == ("host.updated", str(host.host_id))
            at = [await readers(each) for each in two.nodes].index(1)
            leaving = asyncio.create_task(two.nodes.pop(at).stop())
            assert await reader.rest() == [Block("reconnect", {}, None)]
        await leaving
        robin.url = two.nodes[0].url
        assert (await robin.manage("/rename", {"name": "lab-8"}, host_id=host.host_id)).status == 200
        async with reading(robin, url=url, after=reader.last_id) as again:
            told = await again.next()
            assert (told.event, told.data["host_id"]) == ("host.updated", str(host.host_id))


def test_a_quiet_stream_is_spoken_on_before_the_edge_gives_it_up():
    silence = re.search(r"^ {8}proxy_read_timeout (\d+)s;", (SHIPPED / "nginx.conf").read_text(), re.MULTILINE)
    assert 2 * Events().comment_interval < float(silence[1])


BESIDE = (
    "/assets/../index.html",
    "/assets/%2e%2e/index.html",
    "/assets/..%2findex.html",
    "/index.html",
    "/assets/",
    "//",
)


async def test_a_path_beside_the_console_leads_nowhere(two):
    with behind(two) as url:
        for path in BESIDE:
            async with connection(url) as stream:
                assert (await ask(stream, path))[0] == 404, path
