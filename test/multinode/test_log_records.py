"""What a cluster logs while everything goes wrong: constant messages, and nobody's id or address."""

import asyncio
import logging
import re
from pathlib import Path

import pytest

from bothy_kit.cluster import cluster
from bothy_kit.ear import ear
from bothy_kit.eventually import eventually
from bothy_kit.faults import start_behind_links
from bothy_wire.frames import HostSessionOpen

PAGE = Path(__file__).parents[2] / "docs/spec/cluster.md"
SERVER = ("bothy_server", "uvicorn", "websockets.server")
ALWAYS = {*vars(logging.makeLogRecord({})), "message", "asctime"}
ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|://|\[?::1\b|localhost")
QUICK = {
    "database": {"retry_after": "100 ms", "listen_reconnect_backoff_cap": "100 ms"},
    "terminal": {"open_timeout": "1 s", "redial_after": "50 ms", "host_duplicate_probe_timeout": "100 ms"},
}


@pytest.fixture
def records(caplog):
    """``records()``: what the nodes have logged."""
    for name in SERVER:
        caplog.set_level(logging.DEBUG, name)
    return lambda: [
        each for each in caplog.records if each.name.split(".")[0] in {"bothy_server", "uvicorn"} or each.name in SERVER
    ]


async def lone_sides(two, device, host):
    stream = await device.open(host.host_id)
    await host.control.expect(HostSessionOpen)
    client, data = await device.dial(stream, two.nodes[0].url), await host.dial(stream.session_id, two.nodes[1].url)
    ends = await asyncio.gather(client.closed(), data.closed())
    assert [each.code for each in ends] == [4102, 4102]


async def copied_key(two, device, host):
    copy = await host.copy().connect(two.nodes[0].url)
    assert [(await each.closed()).code for each in (host.control, copy)] == [4112, 4112]


async def test_records_of_a_cluster_in_trouble_hold_no_id_and_no_address(database_url, tmp_path, records):
    def said(message):
        return [each for each in records() if each.message == message]

    async with cluster(database_url, tmp_path, nodes=2, start=start_behind_links, **QUICK) as two:
        device, host = await two.device(url=two.nodes[0].url), await two.host()
        await host.connect(two.nodes[1].url)
        await lone_sides(two, device, host)
        async with ear(database_url) as voice:
            await voice.say(f'{{"kind":"terminal.host_close","host_id":"{host.host_id}","name":"lab-1"}}')
        await eventually(lambda: len(said("terminal signal dropped")) == len(two.nodes))
        two.nodes[1].database.cut("bothy-terminal-ephemeral")
        await eventually(lambda: len(said("terminal ephemeral listener restored")) == 1)
        await copied_key(two, device, host)
        await eventually(lambda: len(said("terminal duplicate control connection")) == 1)
        kept = records()

    for each in kept:
        text = f"{logging.Formatter().format(each)} { {name: value for name, value in vars(each).items() if name not in ALWAYS} }"
        assert not ID.search(text), text
        assert not ADDRESS.search(text), text
    for message, level, attributes in listed():
        found = [each for each in kept if each.message == message]
        assert found, message
        for each in found:
            assert (each.levelname.lower(), each.args) == (level, ()), message
            assert vars(each).keys() - ALWAYS == attributes, message


def listed():
    """The rows of the page: message, level, names of attributes."""
    section = PAGE.read_text().partition("\n## Log records\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \| (.+) \|$", section, re.MULTILINE)
    assert len(rows) == 5
    return [(message, level, set(re.findall(r"`(\w+(?:\.\w+)+)`", names))) for message, level, names in rows]
