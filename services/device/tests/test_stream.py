"""Dialling and identifying, against a relay that does it wrongly."""

import asyncio
import uuid
from contextlib import asynccontextmanager

import pytest
import websockets
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bothy_device.failure import Failure, Unreachable
from bothy_device.settings import Wire
from bothy_device.state import Login
from bothy_device.stream import StreamClosedError, dial
from bothy_wire.frames import SideAccepted, SidePaired, SideUnpaired, StreamHello, encode

SESSION = uuid.uuid4()
HELLO = encode(StreamHello(challenge=bytes(32)))


@asynccontextmanager
async def relay(handle):
    async with websockets.serve(
        handle, "127.0.0.1", 0, subprotocols=["bothy.stream.v1"], ping_interval=None, close_timeout=0.5
    ) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def stream(origin, *, patience=5.0):
    login = Login(
        server=origin,
        device_id=uuid.uuid4(),
        device_name="laptop",
        person_name="Alex",
        signing_key=Ed25519PrivateKey.generate().private_bytes_raw(),
        channel_key=bytes(32),
    )
    return dial(login, "/stream", "token", SESSION, wire=Wire(), patience=patience)


async def greet(connection):
    await connection.send(HELLO)
    await connection.recv()
    await connection.send(encode(SideAccepted()))


async def test_frames_and_messages_arrive_as_what_they_are():
    async def handle(connection):
        await greet(connection)
        await connection.send(encode(SidePaired(session_token="token")))
        await connection.send(b"message")
        await connection.send(encode(SideUnpaired()))
        await connection.close(4100, "idle")

    async with relay(handle) as origin, stream(origin) as opened:
        assert [await opened.receive() for _ in range(3)] == [
            SidePaired(session_token="token"),
            b"message",
            SideUnpaired(),
        ]
        with pytest.raises(StreamClosedError) as closed:
            await opened.receive()
        assert (closed.value.code, closed.value.reason) == (4100, "idle")
        with pytest.raises(StreamClosedError):
            await opened.send(b"late")


@pytest.mark.parametrize("first", [b"binary", '{"type":"invented"}', encode(SideAccepted())])
async def test_a_relay_that_begins_with_something_else_is_left_with_4105(first):
    codes = []

    async def handle(connection):
        await connection.send(first)
        await connection.wait_closed()
        codes.append(connection.close_code)

    async with relay(handle) as origin:
        with pytest.raises(StreamClosedError) as closed:
            async with stream(origin):
                pass
        assert closed.value.code == 4105
    assert codes == [4105]


async def test_a_frame_that_is_none_ends_it_with_4105():
    async def handle(connection):
        await greet(connection)
        await connection.send(encode(SideAccepted()))
        await connection.wait_closed()

    async with relay(handle) as origin, stream(origin) as opened:
        with pytest.raises(StreamClosedError) as closed:
            await opened.receive()
        assert closed.value.code == 4105


async def test_a_relay_that_says_nothing_is_left():
    async def handle(connection):
        await connection.wait_closed()

    async with relay(handle) as origin:
        with pytest.raises(Failure, match="accepted the connection and then said nothing"):
            async with stream(origin, patience=0.2):
                pass


async def test_a_relay_that_refuses_at_identify_says_its_code():
    async def handle(connection):
        await connection.send(HELLO)
        await connection.recv()
        await connection.close(4101, "unknown")

    async with relay(handle) as origin:
        with pytest.raises(StreamClosedError) as closed:
            async with stream(origin):
                pass
        assert (closed.value.code, closed.value.reason) == (4101, "unknown")


async def test_a_server_that_knows_no_websockets_and_one_that_is_not_there(unused_tcp_port):
    async def plain(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    with pytest.raises(Failure, match="refused the stream connection with 404"):
        async with stream(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"):
            pass
    server.close()
    await server.wait_closed()
    with pytest.raises(Failure, match="connection refused; is the address right, and is the relay running"):
        async with stream(f"http://127.0.0.1:{unused_tcp_port}"):
            pass


async def test_a_silent_relay_that_answers_pings_lives_and_a_dead_one_does_not():
    async def handle(connection):
        connections.append(connection)
        await greet(connection)
        await connection.wait_closed()

    connections = []
    async with relay(handle) as origin, stream(origin) as opened:
        watching = asyncio.create_task(opened.watch(0.05, 0.2))
        await asyncio.sleep(0.5)
        assert not watching.done()
        connections[0].transport.pause_reading()
        await asyncio.wait_for(watching, 20)
        connections[0].transport.abort()


async def test_a_message_that_takes_long_to_arrive_is_life():
    async def handle(connection):
        await greet(connection)
        connection.transport.pause_reading()  # no pong shows that it lives
        for byte in b"\x82" + bytes([60]) + b"x" * 60:
            connection.transport.write(bytes([byte]))
            await asyncio.sleep(0.05)
        await connection.wait_closed()

    async with relay(handle) as origin, stream(origin) as opened:
        watching = asyncio.create_task(opened.watch(0.5, 1.0))
        assert await opened.receive() == b"x" * 60
        assert not watching.done()
        await asyncio.wait_for(watching, 20)


async def read_on(opened):
    while True:
        await opened.receive()


async def test_a_relay_that_is_heard_is_pinged_all_the_same():
    """It may hear nothing else while a long repaint trickles in."""

    async def handle(connection):
        await greet(connection)
        pings = []
        receive = connection.protocol.receive_data
        connection.protocol.receive_data = lambda data: (pings.append(data), receive(data))[1]
        while len(pings) < 3:
            await connection.send(b"heard")
            await asyncio.sleep(0.01)
        await connection.close(4100, "pinged")

    async with relay(handle) as origin, stream(origin) as opened:
        watching = asyncio.create_task(opened.watch(0.1, 10))
        with pytest.raises(StreamClosedError, match="pinged"):
            await asyncio.wait_for(read_on(opened), 20)
        await watching


async def test_watching_ends_with_the_connection():
    async def handle(connection):
        await greet(connection)

    async with relay(handle) as origin, stream(origin) as opened:
        with pytest.raises(StreamClosedError):
            await opened.receive()
        await asyncio.wait_for(opened.watch(0.01, 10), 20)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_relay_that_names_another_address_is_not_followed(status):
    went = []

    def elsewhere(connection, request):
        went.append(request.path)
        return connection.respond(404, "")

    async def nobody(connection):
        await connection.close()

    async with websockets.serve(nobody, "127.0.0.1", 0, process_request=elsewhere) as other:
        address = f"ws://127.0.0.1:{other.sockets[0].getsockname()[1]}/away"

        def redirect(connection, request):
            response = connection.respond(status, "")
            response.headers["Location"] = address if request.path == "/stream" else "/other"
            return response

        async with websockets.serve(nobody, "127.0.0.1", 0, process_request=redirect) as server:
            with pytest.raises(Unreachable, match=f"refused the stream connection with {status}"):
                async with stream(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"):
                    pass
    assert went == []
