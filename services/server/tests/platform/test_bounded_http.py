"""Strangers on real sockets: too many of them, too slow ones, and those that never come to an end."""

import asyncio
from contextlib import AsyncExitStack, suppress

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.serving import Listener, ListenLimits
from bothy_server.platform.setting_values import Address
from bothy_server.platform.uvicorn_takeover import TAKEOVER

GET = b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 9\r\n\r\n"
UPGRADE = (
    b"GET /taken HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
HEAD_BYTES = 16384


async def app(scope, receive, send):
    """Answers a request when all of it is here; a socket at /taken leaves ASGI."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        if scope["path"] == "/taken":
            scope["extensions"][TAKEOVER](lambda _: asyncio.Protocol())
        else:
            await receive()
        return
    while (message := await receive())["type"] == "http.request" and message["more_body"]:
        pass
    if message["type"] == "http.request":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


class Stranger:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def status(self) -> int:
        """Of the next answer, which is read to its end."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await self.reader.readexactly(int(length.partition(b":")[2]))
        return int(head.split()[1])

    async def cut(self) -> bool:
        """Wait for the end; nothing comes before it."""
        with suppress(ConnectionError):
            return await self.reader.read() == b""
        return True


class Served:
    def __init__(self, address: Address, stack: AsyncExitStack) -> None:
        self.address, self._stack = address, stack

    async def dial(self) -> Stranger:
        reader, writer = await asyncio.open_connection(self.address.host, self.address.port)

        async def hang_up():
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

        self._stack.push_async_callback(hang_up)
        return Stranger(reader, writer)

    async def socket(self, path: str):
        return await self._stack.enter_async_context(connect(f"ws://{self.address}{path}", proxy=None))


@pytest.fixture
async def served(request):
    """Limits as the test's ``bounds`` say; a test that does not end fails."""
    bounds = {"connections": 100, "request_timeout": 10} | request.param
    listener = Listener(
        app, Address("127.0.0.1", 0), ListenLimits(message_bytes=HEAD_BYTES, linger=1, stop_linger=1, **bounds)
    )
    async with asyncio.timeout(30), Lifecycle() as parts, AsyncExitStack() as stack:
        parts.own("listener", listener.run())
        await listener.ready.wait()
        yield Served(listener.address, stack)


def bounds(**of_test):
    return pytest.mark.parametrize("served", [of_test], indirect=True, ids=[""])


@bounds(connections=3)
async def test_one_connection_too_many_is_refused_and_the_others_go_on(served):
    idle, asking = await served.dial(), await served.dial()
    await served.socket("/stays")
    over = await served.dial()
    assert await over.status() == 503
    assert await over.cut()
    with pytest.raises(InvalidStatus) as refused:
        await served.socket("/stays")
    assert refused.value.response.status_code == 503
    asking.write(GET)
    assert await asking.status() == 200
    idle.writer.close()
    await idle.writer.wait_closed()
    asking.write(GET)
    assert await asking.status() == 200  # the listener has seen the end of the other by now
    again = await served.dial()
    again.write(GET)
    assert await again.status() == 200


@bounds(connections=2)
async def test_sockets_that_left_asgi_do_not_count(served):
    for _ in range(4):
        taken = await served.dial()
        taken.write(UPGRADE)
        assert (await taken.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    stranger = await served.dial()
    stranger.write(GET)
    assert await stranger.status() == 200


@bounds(request_timeout=0.2)
@pytest.mark.parametrize(
    "begun", [b"", GET[:1], GET[:-2], POST, POST + b"slow"], ids=["nothing", "line", "head", "body", "more"]
)
async def test_a_request_that_does_not_arrive_is_cut(served, begun):
    slow = await served.dial()
    slow.write(begun)
    assert await slow.cut()


@bounds(request_timeout=0.2)
async def test_a_second_request_has_its_own_time(served):
    slow = await served.dial()
    slow.write(GET)
    assert await slow.status() == 200
    slow.write(POST)
    assert await slow.cut()


@bounds(request_timeout=0.2)
async def test_trickling_helps_nobody(served):
    slow = await served.dial()
    cut = asyncio.create_task(slow.cut())
    while not cut.done():
        slow.write(b"\r\n")  # empty lines before a request are legal
        await asyncio.wait([cut], timeout=0.02)
    assert cut.result()


@bounds(request_timeout=0.2)
async def test_a_request_that_is_here_and_a_socket_have_all_the_time(served):
    socket = await served.socket("/stays")
    asking, timed = await served.dial(), await served.dial()
    asking.write(GET)
    assert await asking.status() == 200
    assert await timed.cut()  # the time has passed
    asking.write(GET)
    assert await asking.status() == 200
    await socket.send("still here")


@bounds()
async def test_a_head_without_end_is_refused(served):
    endless = await served.dial()
    endless.write(GET[:-2] + b"X: " + bytes(b"x" * 2 * HEAD_BYTES))
    assert await endless.status() == 431


@bounds()
async def test_a_long_body_is_no_long_head(served):
    long = await served.dial()
    size = 4 * HEAD_BYTES
    long.write(b"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n\r\n" % size)
    for _ in range(4):
        long.write(bytes(HEAD_BYTES))
        await long.writer.drain()
    assert await long.status() == 200
    long.write(GET)
    assert await long.status() == 200
