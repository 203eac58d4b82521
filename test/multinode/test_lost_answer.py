"""The device's own client opens through an edge whose node dies between the open and its answer: there is one session."""

import asyncio
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from bothy_device.rest import Rest
from bothy_device.state import Login
from bothy_kit.cluster import ORIGIN, cluster
from bothy_kit.fake_device import Stream
from bothy_kit.sockets import PATIENCE_S
from bothy_wire.frames import HostSessionOpen
from bothy_wire.ids import SessionId

OPENED = b"HTTP/1.1 201"


class Edge:
    """Passes connections on to its first node, until that made a session; of its answer not a byte arrives. Then to the next."""

    def __init__(self, urls) -> None:
        self._urls = list(urls)
        self.lost = 0

    async def accept(self, reader, writer):
        node = urlsplit(self._urls[0])
        far_reader, far_writer = await asyncio.open_connection(node.hostname, node.port)
        opening = asyncio.Event()

        async def there():
            while data := await reader.read(65536):
                if b"POST /api/v1/terminal/sessions " in data:
                    opening.set()
                far_writer.write(data)
            far_writer.close()

        async def back():
            while data := await far_reader.read(65536):
                if opening.is_set() and OPENED in data and len(self._urls) > 1:
                    self._urls.pop(0)
                    self.lost += 1
                    break
                writer.write(data)
            writer.close()

        await asyncio.gather(there(), back(), return_exceptions=True)


@asynccontextmanager
async def edge(urls):
    made = Edge(urls)
    server = await asyncio.start_server(made.accept, "127.0.0.1", 0)
    async with server:
        yield made, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
async def two(database_url, tmp_path):
    async with cluster(database_url, tmp_path, nodes=2) as running:
        yield running


async def test_an_open_whose_answer_was_lost_is_the_session_that_the_person_gets(two):
    device, host = await two.couple()
    control = await host.connect(two.nodes[1].url)
    login = Login(
        server=ORIGIN,
        device_id=device.device_id,
        device_name="laptop",
        person_name="Robin",
        signing_key=device.signing_key.private_bytes_raw(),
        channel_key=device.channel_key.private_bytes_raw(),
    )
    async with (
        edge([each.url for each in two.nodes]) as (between, url),
        Rest(url, timeout=PATIENCE_S, login=login) as rest,
    ):
        opened = await rest.open(host.host_id, "shell", "alex-shell")
    assert between.lost == 1
    assert await two.sql("SELECT id FROM terminal_sessions") == [(opened.session_id,)]
    session_id = SessionId(opened.session_id)
    assert (await control.expect(HostSessionOpen)).session_id == session_id
    await device.dial(Stream(session_id, opened.stream_token, b"", opened.attach_seq), two.nodes[1].url)
