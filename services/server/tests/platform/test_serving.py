"""A listener begins, ends and dies in sight of the process."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import connect

from bothy_server.platform.lifecycle import ComponentEnded, Lifecycle
from bothy_server.platform.serving import Listener, ListenError, ListenLimits
from bothy_server.platform.setting_values import Address

LIMITS = ListenLimits(message_bytes=16384, connections=100, request_timeout=10, linger=5, stop_linger=5)


class Slow:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        self.app = Starlette(routes=[Route("/", self.answer)])

    async def answer(self, _: Request) -> PlainTextResponse:
        self.asked.set()
        await self.go.wait()
        return PlainTextResponse("here")


@pytest.fixture
def slow():
    return Slow()


def listener(slow: Slow, host: str = "127.0.0.1", port: int = 0) -> Listener:
    return Listener(slow.app, Address(host, port), LIMITS)


async def served(made: Listener, then: Callable[[], None] = lambda: None) -> None:
    """A process with this listener, which nobody stops."""
    async with Lifecycle() as parts:
        parts.own("listener", made.run())
        await made.ready.wait()
        then()
        await parts.until_stopped()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_listener_tells_its_real_port_and_serves(slow, host):
    slow.go.set()
    async with Lifecycle() as parts:
        made = listener(slow, host)
        parts.own("listener", made.run())
        await made.ready.wait()
        assert made.address.host == host
        async with httpx2.AsyncClient() as client:
            assert (await client.get(f"http://{made.address}/")).text == "here"


async def test_an_open_request_is_answered_at_the_end(slow):
    async with httpx2.AsyncClient() as client:
        async with Lifecycle() as parts:
            made = listener(slow)
            parts.own("listener", made.run())
            await made.ready.wait()
            asking = asyncio.create_task(client.get(f"http://{made.address}/"))
            await slow.asked.wait()
            asyncio.get_running_loop().call_soon(slow.go.set)
        assert (await asking).text == "here"
        with pytest.raises(httpx2.ConnectError):
            await client.get(f"http://{made.address}/")


async def test_one_that_refuses_new_connections_finishes_what_is_open(slow):
    """A drain's third step: who is refused at TCP is led elsewhere by the edge at once."""
    async with httpx2.AsyncClient() as client, Lifecycle() as parts:
        made = listener(slow)
        parts.own("listener", made.run())
        await made.ready.wait()
        idle_reader, idle = await asyncio.open_connection(made.address.host, made.address.port)
        asking = asyncio.create_task(client.get(f"http://{made.address}/"))
        await slow.asked.wait()
        made.refuse_new()
        made.refuse_new()
        assert await idle_reader.read() == b"", "a connection without a request ends"
        idle.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(made.address.host, made.address.port)
        assert (asking.done(), made.connections) == (False, 1)
        slow.go.set()
        answer = await asking
        assert (answer.text, answer.headers["connection"]) == ("here", "close")
        async with asyncio.timeout(10):
            while made.connections:  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.001)


async def test_sockets_stay_when_new_connections_are_refused():
    """uvicorn's own shutdown would send 1012 to each of them at once."""

    async def echo(websocket: WebSocket) -> None:
        await websocket.accept()
        with suppress(WebSocketDisconnect):
            while True:
                await websocket.send_text(await websocket.receive_text())

    async with Lifecycle() as parts:
        made = Listener(Starlette(routes=[WebSocketRoute("/", echo)]), Address("127.0.0.1", 0), LIMITS)
        parts.own("listener", made.run())
        await made.ready.wait()
        async with connect(f"ws://{made.address}/", proxy=None) as socket_:
            await socket_.send("before")
            assert await socket_.recv() == "before"
            made.refuse_new()
            await socket_.send("after")
            assert (await socket_.recv(), made.connections) == ("after", 1)


async def test_a_taken_port_is_named(slow):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=rf"127\.0\.0\.1:{port} cannot be bound: Address already in use"):
            listener(slow, port=port)


async def test_a_port_that_somebody_else_listens_on_first_is_told(slow):
    """Two may bind one address; only one of them can listen."""
    made = listener(slow)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", made.address.port))
        other.listen()
        with pytest.raises(ComponentEnded) as ended:
            await served(made)
    assert str(ended.value.__cause__) == f"{made.address} cannot be served: Address already in use"


@pytest.mark.parametrize("fault", [None, ZeroDivisionError()])
async def test_a_listener_that_dies_ends_the_process(slow, monkeypatch, fault):
    died = asyncio.Event()

    async def tick(_self, _counter):
        if died.is_set() and fault:
            raise fault
        return died.is_set()

    monkeypatch.setattr(uvicorn.Server, "on_tick", tick)
    with pytest.raises(ComponentEnded) as ended:
        await served(listener(slow), died.set)
    assert isinstance(ended.value.__cause__, ListenError if fault is None else ZeroDivisionError)
