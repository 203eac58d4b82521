"""Event streams on real sockets: blocks as they come, and what becomes of a reader that takes none."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.server_sent_events import EventStream, ServerSentEvent
from bothy_server.platform.serving import Listener, ListenLimits
from bothy_server.platform.setting_values import Address

LIMITS = ListenLimits(message_bytes=16384, connections=10, request_timeout=15, linger=15, stop_linger=1)
GET = b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"
Events = Callable[[], AsyncIterator[ServerSentEvent]]


@pytest.mark.parametrize(
    ("event", "block"),
    [
        (ServerSentEvent(event="reset", data={}, id="7"), b"id: 7\nevent: reset\ndata: {}\n\n"),
        (
            ServerSentEvent(event="told", data={"word": "a\nb\r\u2028"}),
            b'event: told\ndata: {"word":"a\\nb\\r\xe2\x80\xa8"}\n\n',
        ),
        (ServerSentEvent(id="7"), b"id: 7\n\n"),
        (ServerSentEvent(), b":\n\n"),
    ],
)
def test_a_block_has_one_line_for_each_field(event: ServerSentEvent, block: bytes) -> None:
    assert event.encode() == block


class Served:
    """One stream after another; ``ended`` counts those that are over."""

    def __init__(self, events: Events, patience: float) -> None:
        self.ended = 0
        self.over = asyncio.Event()
        self._events = events
        self._patience = patience

    async def answer(self, _: Request) -> Response:
        stream = EventStream(events=self._events(), retry=1.5, patience=self._patience, ended=self._count)
        return stream.response()

    def _count(self) -> None:
        self.ended += 1
        self.over.set()


@asynccontextmanager
async def served(events: Events, patience: float = 15) -> AsyncIterator[tuple[Served, socket.socket]]:
    """A stream's server and a connection that asked for it."""
    serving = Served(events, patience)
    listener = Listener(Starlette(routes=[Route("/", serving.answer)]), Address("127.0.0.1", 0), LIMITS)
    async with Lifecycle() as parts:
        parts.own("listener", listener.run())
        await listener.ready.wait()
        with socket.socket() as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(reader, (listener.address.host, listener.address.port))
            await loop.sock_sendall(reader, GET)
            yield serving, reader


async def until(reader: socket.socket, last: bytes) -> bytes:
    got = b""
    async with asyncio.timeout(15):
        while last not in got:
            got += await asyncio.get_running_loop().sock_recv(reader, 1024)
    return got


async def test_blocks_come_as_they_are_told_and_the_end_is_an_end() -> None:
    go_on = asyncio.Event()

    async def two() -> AsyncIterator[ServerSentEvent]:
        yield ServerSentEvent(event="one", data=1)
        await go_on.wait()
        yield ServerSentEvent(event="two", data=2)

    async with served(two) as (serving, reader):
        first = await until(reader, b"data: 1\n\n")
        assert b"retry: 1500\n\n" in first
        assert b"transfer-encoding: chunked" in first
        go_on.set()
        assert b"event: two" in await until(reader, b"0\r\n\r\n")
        assert serving.ended == 1


async def test_a_reader_that_goes_ends_the_stream() -> None:
    async def silence() -> AsyncIterator[ServerSentEvent]:
        yield ServerSentEvent(event="one", data=1)
        await asyncio.Event().wait()

    async with served(silence) as (serving, reader):
        await until(reader, b"data: 1\n\n")
        reader.close()
        async with asyncio.timeout(15):
            await serving.over.wait()
        assert serving.ended == 1


async def test_a_reader_that_takes_nothing_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    """It holds what the system and the listener keep for it, for as long as they are patient, and then nothing."""
    told = 0

    async def flood() -> AsyncIterator[ServerSentEvent]:
        nonlocal told
        while True:
            told += 1
            yield ServerSentEvent(event="told", data="x" * 4096)

    with caplog.at_level(logging.WARNING):
        async with served(flood, patience=0.05) as (serving, reader):
            async with asyncio.timeout(15):
                await serving.over.wait()
            assert serving.ended == 1
            before = told
            with suppress(ConnectionError):  # cut in the middle, or behind what had arrived
                while await asyncio.get_running_loop().sock_recv(reader, 65536):
                    pass
            assert told == before
    assert caplog.messages == []
