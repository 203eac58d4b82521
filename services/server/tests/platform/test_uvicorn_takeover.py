"""The takeover on real sockets, on both event loops, and the private parts of uvicorn that it stands on."""

import asyncio
import contextlib
import functools
import inspect
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Self
from unittest.mock import Mock

import pytest
import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Close, Frame, Opcode

from bothy_server.kernel.clock import Clock
from bothy_server.platform.uvicorn_takeover import (
    MESSAGE_LIMIT,
    PING,
    TAKEOVER,
    TakeoverHttpProtocol,
    TakeoverWebSocketProtocol,
)
from bothy_server.terminal.adapters.sockets.forwarder import ForwarderLimits, StreamForwarder
from bothy_server.terminal.adapters.sockets.pump import StreamPump
from bothy_server.terminal.app.ports import SideEvents

Endpoint = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
Scenario = Callable[[], Coroutine[Any, Any, None]]

MAX_BYTES = 16 * 1024
LINGER = 0.3

UPGRADE = (
    b"GET /%b HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture(params=["asyncio", "uvloop"])
def on_loop(request) -> Callable[[Scenario], None]:
    run = asyncio.run if request.param == "asyncio" else uvloop.run

    def go(scenario: Scenario) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(60):
                await scenario()

        run(bounded())

    return go


class Raw(asyncio.Protocol):
    """The protocol that takes over: it records bytes."""

    def __init__(self) -> None:
        self.received = b""
        self.paused = False
        self.lost = asyncio.Event()
        self._more = asyncio.Event()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        self._more.set()

    def pause_writing(self):
        self.paused = True

    def connection_lost(self, exc):
        self.lost.set()

    async def until(self, expected: bytes) -> None:
        while len(self.received) < len(expected):
            self._more.clear()
            await self._more.wait()
        assert self.received == expected


class Client:
    """A client that writes the bytes it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def upgraded(self) -> None:
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head
        assert b"sec-websocket-extensions" not in head.lower()

    async def frame(self) -> tuple[int, bytes]:
        first, length = await self.reader.readexactly(2)
        if length == 126:
            length = int.from_bytes(await self.reader.readexactly(2), "big")
        return first & 0x0F, await self.reader.readexactly(length)

    async def close_code(self) -> int:
        opcode, payload = await self.frame()
        assert opcode == Opcode.CLOSE
        return Close.parse(payload).code


class Node:
    """uvicorn's protocols in front of one endpoint."""

    def __init__(self, endpoint: Endpoint, **settings: Any) -> None:
        async def app(scope, receive, send):
            assert (await receive())["type"] == "websocket.connect"
            await endpoint(scope, receive, send)

        self.config = uvicorn.Config(
            app,
            http=TakeoverHttpProtocol,
            ws=functools.partial(TakeoverWebSocketProtocol, LINGER),
            ws_max_size=MAX_BYTES,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            log_level="error",
            **settings,
        )
        self.config.load()
        self.state = ServerState()
        self._clients = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: self.config.http_protocol_class(config=self.config, server_state=self.state, app_state={}),
            "127.0.0.1",
        )
        return self

    async def __aexit__(self, *exc) -> None:
        await self._clients.aclose()
        self._server.close()
        await self._server.wait_closed()

    async def dial(self) -> Client:
        reader, writer = await asyncio.open_connection(*self._server.sockets[0].getsockname())

        async def hang_up() -> None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

        self._clients.push_async_callback(hang_up)
        return Client(reader, writer)

    async def forgotten(self) -> None:
        """Wait until uvicorn knows of no connection and no task."""
        await turns_until(lambda: not self.state.connections and not self.state.tasks)


async def turns_until(holds: Callable[[], object]) -> None:
    """Let the loop turn until a state of uvicorn holds that it announces to nobody."""
    while not holds():  # noqa: ASYNC110 - see above
        await asyncio.sleep(0)


def masked(opcode: Opcode, payload: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=True)


HELLO = masked(Opcode.TEXT, b"hello")


class Taker:
    """An endpoint that takes over after one message and a signal of the test."""

    def __init__(self) -> None:
        self.raw: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self.identified = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, scope, receive, send) -> None:
        await send({"type": "websocket.accept"})
        assert (await receive())["text"] == "hello"
        self.identified.set()
        await self.go.wait()
        self.protocol = scope["extensions"][TAKEOVER].__self__
        assert self.protocol.ping_timer is not None
        self.raw.set_result(scope["extensions"][TAKEOVER](lambda _: Raw()))


async def read_by(node: Node, client: Client) -> None:
    """Wait until the node has read what the client sent."""
    peer = client.writer.get_extra_info("sockname")
    (protocol,) = (known for known in node.state.connections if known.client == peer)
    await turns_until(lambda: protocol._unread or protocol._offered)


def test_a_stream_leaves_asgi_and_goes_on_both_ways(on_loop):
    async def scenario():
        taker = Taker()
        taker.go.set()
        async with Node(taker) as node:
            client = await node.dial()
            client.write(UPGRADE % b"")
            await client.upgraded()
            client.write(HELLO)
            raw = await taker.raw
            await node.forgotten()  # no shutdown, no end of the run
            assert taker.protocol.ping_timer is None
            client.write(b"any bytes")
            await raw.until(b"any bytes")
            raw.transport.write(b"back")
            assert await client.reader.readexactly(4) == b"back"
            client.writer.close()
            await raw.lost.wait()

    on_loop(scenario)


def test_bytes_in_the_segment_of_the_upgrade_are_not_lost(on_loop):
    rest = masked(Opcode.BINARY, b"one") + masked(Opcode.BINARY, b"two" * 100)

    async def scenario():
        taker = Taker()
        taker.go.set()
        async with Node(taker) as node:
            client = await node.dial()
            client.write(UPGRADE % b"" + HELLO + rest[:-5])
            await client.upgraded()
            raw = await taker.raw
            client.write(rest[-5:])
            await raw.until(rest)

    on_loop(scenario)


@pytest.mark.parametrize(
    ("before", "rest"),
    [
        pytest.param(b"", masked(Opcode.BINARY, b"queued") + masked(Opcode.TEXT, b"behind it"), id="message"),
        pytest.param(b"", masked(Opcode.BINARY, b"half")[:7], id="half a frame"),
        pytest.param(b"", masked(Opcode.BINARY, b"h")[:1], id="half a header"),
        pytest.param(b"", masked(Opcode.BINARY, b"part", fin=False), id="half a message"),
        pytest.param(b"", masked(Opcode.BINARY, b"x" * 9000), id="large"),
        pytest.param(masked(Opcode.PING, b"?"), masked(Opcode.BINARY, b"q"), id="behind a ping"),
        pytest.param(b"", masked(Opcode.BINARY, b"q") + masked(Opcode.CLOSE, b"\x03\xe8"), id="before a close"),
    ],
)
def test_what_was_read_but_not_received_is_handed_over(on_loop, before, rest):
    async def scenario():
        taker = Taker()
        async with Node(taker) as node:
            client = await node.dial()
            client.write(UPGRADE % b"")
            await client.upgraded()
            client.write(HELLO)
            await taker.identified.wait()
            client.write(before + rest)
            await read_by(node, client)
            taker.go.set()
            raw = await taker.raw
            await raw.until(rest)
            client.write(b"later")  # reading goes on, although uvicorn may have paused it
            await raw.until(rest + b"later")
            if before:
                assert await client.frame() == (Opcode.PONG, b"?")

    on_loop(scenario)


def test_a_connection_that_is_gone_is_not_handed_over(on_loop):
    async def scenario():
        refused = asyncio.Event()

        async def endpoint(scope, receive, send):
            await send({"type": "websocket.accept"})
            assert (await receive())["type"] == "websocket.disconnect"
            with pytest.raises(ClientDisconnected):
                scope["extensions"][TAKEOVER](lambda _: pytest.fail("made"))
            refused.set()

        async with Node(endpoint) as node:
            client = await node.dial()
            client.write(UPGRADE % b"")
            await client.upgraded()
            client.writer.close()
            await refused.wait()

    on_loop(scenario)


def test_receive_and_send_are_over_after_the_takeover(on_loop):
    async def scenario():
        done = asyncio.Event()

        async def endpoint(scope, receive, send):
            await send({"type": "websocket.accept"})
            raw = scope["extensions"][TAKEOVER](lambda _: Raw())
            assert (await receive())["type"] == "websocket.disconnect"
            with pytest.raises(ClientDisconnected):
                await send({"type": "websocket.send", "text": "late"})
            raw.transport.write(b"!")
            done.set()

        async with Node(endpoint) as node:
            client = await node.dial()
            client.write(UPGRADE % b"" + HELLO)
            await client.upgraded()
            await done.wait()
            assert await client.reader.readexactly(1) == b"!"

    on_loop(scenario)


def test_a_paused_writer_is_told_so(on_loop):
    async def scenario():
        paused = asyncio.get_running_loop().create_future()

        async def endpoint(scope, receive, send):
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "bytes": bytes(16 << 20)})  # more than any socket takes
            raw = scope["extensions"][TAKEOVER](lambda _: Raw())
            paused.set_result(raw.paused)
            raw.transport.abort()

        async with Node(endpoint) as node:
            client = await node.dial()
            client.write(UPGRADE % b"")
            assert await paused

    on_loop(scenario)


def test_an_endpoint_that_stays_is_served_as_before(on_loop):
    async def scenario():
        async def echo(scope, receive, send):
            await send({"type": "websocket.accept"})
            while (message := await receive())["type"] == "websocket.receive":
                await send({"type": "websocket.send", "text": message["text"]})

        async with Node(echo) as node:
            client = await node.dial()
            texts = [b"%d" % number for number in range(50)]
            client.write(UPGRADE % b"" + b"".join(masked(Opcode.TEXT, text) for text in texts))
            await client.upgraded()
            for text in texts:
                assert await client.frame() == (Opcode.TEXT, text)
            client.write(masked(Opcode.PING, b"p") + masked(Opcode.CLOSE, b"\x03\xe8"))
            assert await client.frame() == (Opcode.PONG, b"p")
            assert await client.close_code() == 1000
            assert not await client.reader.read()
            await node.forgotten()

    on_loop(scenario)


def test_a_refusal_after_accept_finishes_its_closing_handshake(on_loop):
    async def scenario():
        protocol = asyncio.get_running_loop().create_future()

        async def refuse(scope, receive, send):
            protocol.set_result(scope["extensions"][TAKEOVER].__self__)
            await send({"type": "websocket.accept"})
            await receive()
            await send({"type": "websocket.close", "code": 4101})

        async with Node(refuse) as node:
            client = await node.dial()
            client.write(UPGRADE % b"" + HELLO * 3)
            await client.upgraded()
            assert await client.close_code() == 4101
            client.write(HELLO * 1000 + masked(Opcode.CLOSE, b"\x10\x05"))
            assert not await client.reader.read()
            assert len((await protocol)._offered) <= len(HELLO * 2)  # what nobody wants is not kept

    on_loop(scenario)


def test_what_comes_before_accept_is_not_collected(on_loop):
    async def scenario():
        accept = asyncio.Event()
        protocol = asyncio.get_running_loop().create_future()

        async def endpoint(scope, receive, send):
            protocol.set_result(scope["extensions"][TAKEOVER].__self__)
            await accept.wait()
            await send({"type": "websocket.accept"})
            await receive()

        async with Node(endpoint) as node:
            client = await node.dial()
            client.write(UPGRADE % b"" + HELLO * 1_000_000)
            unread = (await protocol)._unread
            for _ in range(1000):  # as good as for ever: one turn reads up to 256 KiB
                await asyncio.sleep(0)
            assert len(unread) <= 512 * 1024
            accept.set()
            await client.upgraded()

    on_loop(scenario)


def test_a_refusal_before_accept_answers(on_loop):
    async def scenario():
        async def refuse(scope, receive, send):
            await send({"type": "websocket.close"})

        async with Node(refuse) as node:
            client = await node.dial()
            client.write(UPGRADE % b"" + HELLO)
            assert (await client.reader.read()).startswith(b"HTTP/1.1 403 ")

    on_loop(scenario)


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(bytes.fromhex("82ff0000010000000000"), id="a frame of 2^40 bytes"),
        pytest.param(masked(Opcode.BINARY, bytes(MAX_BYTES), fin=False) * 2, id="fragments"),
        pytest.param(
            masked(Opcode.BINARY, b"", fin=False) + masked(Opcode.CONT, b"", fin=False) * 20_000, id="empty fragments"
        ),
    ],
)
def test_too_much_is_refused_before_it_is_kept(on_loop, flood):
    async def scenario():
        async def endpoint(scope, receive, send):
            await send({"type": "websocket.accept"})
            assert (await receive())["type"] == "websocket.disconnect"

        async with Node(endpoint) as node:
            client = await node.dial()
            client.write(UPGRADE % b"")
            await client.upgraded()
            client.write(flood)
            assert await client.close_code() == 1009

    on_loop(scenario)


def test_an_identified_peer_may_be_allowed_more(on_loop):
    async def scenario():
        async def endpoint(scope, receive, send):
            await send({"type": "websocket.accept"})
            await receive()
            scope["extensions"][MESSAGE_LIMIT](4 * MAX_BYTES)
            size = len((await receive())["bytes"])
            await send({"type": "websocket.send", "text": str(size)})
            await receive()

        async with Node(endpoint) as node:
            client = await node.dial()
            client.write(UPGRADE % b"")
            await client.upgraded()
            client.write(HELLO + masked(Opcode.BINARY, bytes(4 * MAX_BYTES)))
            assert await client.frame() == (Opcode.TEXT, b"%d" % (4 * MAX_BYTES))
            client.write(masked(Opcode.BINARY, bytes(4 * MAX_BYTES + 1)))
            assert await client.close_code() == 1009

    on_loop(scenario)


def test_only_the_pong_with_the_payload_answers_a_ping(on_loop):
    async def scenario():
        answered: list[bytes] = []

        async def endpoint(scope, receive, send):
            await send({"type": "websocket.accept"})

            async def ping(payload):
                await scope["extensions"][PING](payload)
                answered.append(payload)
                await send({"type": "websocket.send", "bytes": payload})

            async with asyncio.TaskGroup() as pings:
                tasks = [pings.create_task(ping(payload)) for payload in (b"one", b"two", b"never")]
                assert (await receive())["text"] == "hello"
                assert answered == []
                assert (await receive())["type"] == "websocket.disconnect"
                for task in tasks:
                    task.cancel()
            with pytest.raises(ClientDisconnected):
                await scope["extensions"][PING](b"late")
            answered.append(b"refused")

        async with Node(endpoint) as node:
            client = await node.dial()
            client.write(UPGRADE % b"")
            await client.upgraded()
            assert [await client.frame() for _ in range(3)] == [
                (Opcode.PING, b"one"),
                (Opcode.PING, b"two"),
                (Opcode.PING, b"never"),
            ]
            client.write(masked(Opcode.PONG, b"") + masked(Opcode.PONG, b"on") + HELLO)
            client.write(masked(Opcode.PONG, b"two") + masked(Opcode.PONG, b"two"))
            assert await client.frame() == (Opcode.BINARY, b"two")
            client.write(masked(Opcode.PONG, b"one"))
            assert await client.frame() == (Opcode.BINARY, b"one")
            client.write(masked(Opcode.CLOSE, b"\x03\xe8"))
            await client.close_code()
            await node.forgotten()
        assert answered == [b"two", b"one", b"refused"]

    on_loop(scenario)


def test_two_forwarders_take_over_and_are_joined(on_loop):
    """The real use: what a side sent too early is a violation, what it sends when joined reaches the other."""
    limits = ForwarderLimits(4096, 256, 65536, 16384, None, 120, 10, 20, 20)

    async def scenario():
        links: asyncio.Queue[StreamForwarder] = asyncio.Queue()
        clock, events = Mock(spec=Clock), Mock(spec=SideEvents)

        async def endpoint(scope, receive, send):
            await send({"type": "websocket.accept"})
            await receive()
            link = scope["extensions"][TAKEOVER](lambda _: StreamForwarder(limits, events, clock))
            link.send_text("accepted")
            links.put_nowait(link)

        async with Node(endpoint) as node:
            clients = [await node.dial() for _ in range(3)]
            for client in clients:
                client.write(UPGRADE % b"" + HELLO)
                await client.upgraded()
                assert await client.frame() == (Opcode.TEXT, b"accepted")
            one, other, _ = clients
            StreamPump().join(await links.get(), await links.get())
            one.write(masked(Opcode.BINARY, b"there"))
            assert await other.frame() == (Opcode.BINARY, b"there")
            other.write(masked(Opcode.BINARY, b"and back"))
            assert await one.frame() == (Opcode.BINARY, b"and back")

            early = await node.dial()
            early.write(UPGRADE % b"" + HELLO + masked(Opcode.BINARY, b"early"))
            await early.upgraded()
            assert await early.close_code() == 4105

    on_loop(scenario)


def test_thousands_of_takeovers_lose_nothing(on_loop):
    """Pairs under fresh and reused ids; the first frames are in the parser, in the queue or in half at the moment."""
    pairs, at_once = 1500, 16
    payload = masked(Opcode.BINARY, b"first") + masked(Opcode.BINARY, b"second" * 50)

    async def scenario():
        turns = itertools.count()
        waiting: dict[str, Raw] = {}
        met: dict[str, asyncio.Future[tuple[Raw, Raw]]] = {}

        async def endpoint(scope, receive, send):
            await send({"type": "websocket.accept"})
            assert (await receive())["text"] == "hello"
            for _ in range(next(turns) % 4):
                await asyncio.sleep(0)
            raw = scope["extensions"][TAKEOVER](lambda _: Raw())
            counterpart = waiting.pop(scope["path"], None)
            if counterpart is None:
                waiting[scope["path"]] = raw
            else:
                met[scope["path"]].set_result((counterpart, raw))

        async def side(node: Node, path: str, cut: int) -> Client:
            client = await node.dial()
            whole = UPGRADE % path.encode() + HELLO + payload
            cut = min(cut, len(whole))
            client.write(whole[:cut])
            await asyncio.sleep(0)
            client.write(whole[cut:])
            await client.upgraded()
            return client

        async def pair(node: Node, number: int) -> None:
            # Every second id was used before; a worker runs one pair at a time, so it is free again.
            path = f"{number % at_once}-{number if number % 2 else 'again'}"
            key = "/" + path
            met[key] = asyncio.get_running_loop().create_future()
            head = len(UPGRADE % path.encode())
            one, other = await asyncio.gather(
                side(node, path, head + number % (len(HELLO + payload) + 1)),
                side(node, path, head + len(HELLO) - 1 + number % 7),
            )
            for raw in await met.pop(key):
                await raw.until(payload)
                raw.transport.write(b"done")
            for client in (one, other):
                assert await client.reader.readexactly(4) == b"done"
                client.writer.close()

        async def worker(node: Node, first: int) -> None:
            for number in range(first, pairs, at_once):
                await pair(node, number)

        async with Node(endpoint) as node:
            async with asyncio.TaskGroup() as workers:
                for first in range(at_once):
                    workers.create_task(worker(node, first))
            await node.forgotten()
            assert not waiting
            assert not met

    on_loop(scenario)


def test_the_private_parts_of_uvicorn_are_as_they_were():
    """When this fails after an upgrade of uvicorn, read its protocols again before the pin is moved."""
    assert uvicorn.__version__.startswith("0.54.")

    http = inspect.getsource(HttpToolsProtocol)
    assert "except httptools.HttpParserUpgrade:" in http
    assert "self.handle_websocket_upgrade()" in http
    assert "self.transport.set_protocol(protocol)" in http

    async def inspect_instance() -> None:
        config = uvicorn.Config(lambda: None, log_config=None, lifespan="off", ws_max_size=7)
        config.load()
        protocol = WebSocketsSansIOProtocol(config, ServerState(), {})
        for name, kind in {
            "handshake_initiated": bool,
            "handshake_complete": bool,
            "close_sent": bool,
            "read_paused": bool,
            "disconnected": bool,
            "writable": asyncio.Event,
            "queue": asyncio.Queue,
            "connections": set,
        }.items():
            assert isinstance(getattr(protocol, name), kind), name
        assert protocol.transport is None
        assert protocol.conn.max_message_size == 7

    asyncio.run(inspect_instance())

    ws = WebSocketsSansIOProtocol
    assert "self.response = self.conn.accept(event)" in inspect.getsource(ws.handle_connect)
    assert inspect.getsource(ws.run_asgi).rstrip().endswith("self.transport.close()")
    assert "if self.read_paused and self.queue.empty():" in inspect.getsource(ws.receive)
    assert "if self.disconnected:" in inspect.getsource(ws.send)
    assert "self.transport.pause_reading()" in inspect.getsource(ws.send_receive_event_to_app)
    assert "self.handle_pong(event)" in inspect.getsource(ws.handle_events)
    assert "!= self.pending_ping_payload" in inspect.getsource(ws.handle_pong)
    for name in ("stop_keepalive", "handle_parser_exception", "shutdown"):
        assert callable(getattr(ws, name))
