from __future__ import annotations

import asyncio
import contextlib
import ssl
from dataclasses import replace

import pytest
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from bothy_host.dial import DialError, Manner, close_code, dialled, leave

MANNER = Manner(dial_timeout=5, close_timeout=0.2, ping_interval=0.1, ping_timeout=0.1, max_frame_bytes=65792)
SLOW = replace(MANNER, ping_interval=0.5, ping_timeout=1.0)
TLS = ssl.create_default_context()


@pytest.fixture
async def site():
    connections = []

    async def handle(connection) -> None:
        connections.append(connection)
        try:
            async for message in connection:
                await connection.send(message)
        except ConnectionClosed:
            pass

    async with serve(
        handle, "127.0.0.1", 0, subprotocols=["x"], ping_interval=None, max_size=None, close_timeout=0.2
    ) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connections


async def test_no_compression_is_offered_and_a_quiet_peer_that_lives_is_kept(site):
    audience, connections = site
    async with dialled(audience, "/a", "x", MANNER, TLS) as connection:
        assert "Sec-WebSocket-Extensions" not in connections[0].request.headers
        await asyncio.sleep(4 * (MANNER.ping_interval + MANNER.ping_timeout))
        await connection.send("still")
        assert await connection.recv() == "still"


async def test_a_message_that_takes_long_to_arrive_is_life(site):
    audience, connections = site
    async with dialled(audience, "/a", "x", SLOW, TLS) as connection:
        transport = connections[0].transport
        transport.pause_reading()  # no pong shows that it lives
        for byte in b"\x82" + bytes([60]) + b"x" * 60:
            transport.write(bytes([byte]))
            await asyncio.sleep(0.05)
        assert await connection.recv() == b"x" * 60


async def test_a_peer_that_takes_nothing_for_long_and_pings_lives(site):
    """Behind a long message on a slow way our pings reach nobody for a while, and those of the other end reach us."""
    audience, connections = site
    async with dialled(audience, "/a", "x", SLOW, TLS) as connection:
        connections[0].transport.pause_reading()
        await connection.send(b"x" * 60_000)
        for _ in range(30):
            connections[0].transport.write(b"\x89\x00")
            await asyncio.sleep(0.1)
        connections[0].transport.resume_reading()
        assert await connection.recv() == b"x" * 60_000


async def test_a_peer_that_is_heard_is_pinged_all_the_same(site):
    audience, connections = site
    async with dialled(audience, "/a", "x", MANNER, TLS) as connection:
        pings = []
        receive = connections[0].protocol.receive_data
        connections[0].protocol.receive_data = lambda data: (pings.append(data), receive(data))[1]
        async with asyncio.timeout(10):
            while len(pings) < 3:
                await connections[0].send("heard")
                assert await connection.recv() == "heard"


async def test_a_peer_that_reads_nothing_is_left(site):
    audience, connections = site
    async with dialled(audience, "/a", "x", MANNER, TLS) as connection:
        connections[0].transport.pause_reading()
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(connection.recv(), 10)
        assert close_code(closed.value) == 1006
    connections[0].transport.abort()


async def test_leaving_gives_up_on_a_full_connection(site):
    audience, connections = site
    async with dialled(audience, "/a", "x", MANNER, TLS) as connection:
        connections[0].transport.pause_reading()

        async def fill() -> None:
            with contextlib.suppress(ConnectionClosed):
                while True:
                    await connection.send(b"x" * 60_000)

        filling = asyncio.create_task(fill())
        await asyncio.sleep(0)
        await asyncio.wait_for(leave(connection, 1000, "x" * 500), 10)
        await asyncio.wait_for(filling, 10)
    connections[0].transport.abort()


async def test_a_message_that_is_too_large_is_refused(site):
    audience, connections = site
    async with dialled(audience, "/a", "x", MANNER, TLS) as connection:
        await connections[0].send(b"x" * 70_000)
        with pytest.raises(ConnectionClosed):
            await connection.recv()
    assert connections[0].close_code == 1009


async def test_what_is_no_server_is_one_line(unused_tcp_port):
    async def shout(_, writer) -> None:
        writer.write(b"HTTP/1.0 400 plain\r\n\r\n")
        writer.close()

    plain = await asyncio.start_server(shout, "127.0.0.1", 0)
    port = plain.sockets[0].getsockname()[1]
    wrong = {f"http://127.0.0.1:{unused_tcp_port}": "connection refused; is", f"https://127.0.0.1:{port}": "no TLS"}
    for audience, word in wrong.items():
        with pytest.raises(DialError, match=word):
            async with dialled(audience, "/a", "x", MANNER, TLS):
                pass
    plain.close()
    await plain.wait_closed()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_server_that_names_another_address_is_not_followed(site, status):
    audience, connections = site

    def redirect(connection, request):
        response = connection.respond(status, "")
        response.headers["Location"] = f"ws{audience.removeprefix('http')}/away"
        return response

    async def nobody(connection) -> None:
        await connection.close()

    async with serve(nobody, "127.0.0.1", 0, process_request=redirect) as server:
        with pytest.raises(DialError):
            async with dialled(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "/a", "x", MANNER, TLS):
                pass
    assert connections == []
