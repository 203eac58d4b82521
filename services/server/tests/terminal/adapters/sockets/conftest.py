"""Links over real sockets. The far end is read by the websockets library, which shares no code with ours."""

import asyncio
import contextlib
import dataclasses
import socket
from datetime import UTC, datetime
from typing import Self

import pytest
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, Protocol

from bothy_server.terminal.adapters.sockets.forwarder import ForwarderLimits, StreamForwarder

LIMITS = ForwarderLimits(
    max_frame_bytes=4096,
    max_unidentified_frame_bytes=256,
    buffer_high_bytes=256 * 1024,
    buffer_low_bytes=64 * 1024,
    socket_buffer_bytes=None,
    stall_timeout=120,
    close_linger=10,
    ping_interval=20,
    ping_timeout=20,
)

PATIENCE = 30
"""Seconds after which a test that waits has failed."""


class ManualClock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._timers: list[ManualTimer] = []

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._now, UTC)

    def monotonic(self) -> float:
        return self._now

    def call_at(self, at, callback):
        timer = ManualTimer(self._timers, at, callback)
        self._timers.append(timer)
        return timer

    async def sleep_until(self, at):
        raise NotImplementedError

    @property
    def armed(self) -> int:
        return len(self._timers)

    def advance(self, seconds: float) -> None:
        until = self._now + seconds
        while due := [timer for timer in self._timers if timer.at <= until]:
            timer = min(due, key=lambda timer: timer.at)
            self._now = max(self._now, timer.at)
            timer.cancel()
            timer.callback()
        self._now = until


class ManualTimer:
    def __init__(self, timers, at, callback):
        self._timers, self.at, self.callback = timers, at, callback

    def cancel(self) -> None:
        if self in self._timers:
            self._timers.remove(self)


class Events:
    """A SideEvents that queues what it is told."""

    def __init__(self) -> None:
        self.told: asyncio.Queue = asyncio.Queue()

    def text(self, link, payload):
        self.told.put_nowait(("text", link, payload))

    def gone(self, link, code):
        self.told.put_nowait(("gone", link, code))

    def stalled(self, link):
        self.told.put_nowait(("stalled", link, None))

    async def next(self):
        async with asyncio.timeout(PATIENCE):
            return await self.told.get()


class Link(StreamForwarder):
    """A forwarder that tells when it is connected."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self.connected = asyncio.Event()

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self.transport = transport
        self.connected.set()


class Peer:
    """The far end: writes masked frames, reads what comes with the library."""

    def __init__(self, reader, writer) -> None:
        self.reader, self.writer = reader, writer
        self._protocol = Protocol(CLIENT)
        self._frames: list[Frame] = []

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def binary(self, data: bytes, *, fin: bool = True) -> None:
        self.send(Frame(Opcode.BINARY, data, fin).serialize(mask=True))

    def more(self, data: bytes, *, fin: bool = True) -> None:
        self.send(Frame(Opcode.CONT, data, fin).serialize(mask=True))

    def text(self, data: bytes, *, fin: bool = True) -> None:
        self.send(Frame(Opcode.TEXT, data, fin).serialize(mask=True))

    def ping(self, data: bytes = b"") -> None:
        self.send(Frame(Opcode.PING, data).serialize(mask=True))

    def close(self, data: bytes = b"") -> None:
        self.send(Frame(Opcode.CLOSE, data).serialize(mask=True))

    async def frame(self) -> tuple[Opcode, bytes]:
        while not self._frames:
            async with asyncio.timeout(PATIENCE):
                data = await self.reader.read(65536)
            assert data, "the connection ended"
            self._protocol.receive_data(data)
            assert self._protocol.parser_exc is None, self._protocol.parser_exc
            self._frames += self._protocol.events_received()
        frame = self._frames.pop(0)
        return frame.opcode, bytes(frame.data)

    async def message(self) -> bytes:
        """The next binary message, put together."""
        opcode, data = await self.frame()
        assert opcode == Opcode.BINARY
        while self._protocol.current_size is not None or (self._frames and self._frames[0].opcode == Opcode.CONT):
            opcode, more = await self.frame()
            assert opcode == Opcode.CONT
            data += more
        return data

    async def close_code(self) -> int:
        opcode, data = await self.frame()
        assert opcode == Opcode.CLOSE
        return int.from_bytes(data[:2], "big")

    async def exactly(self, data: bytes) -> None:
        """The next bytes, not read as frames."""
        async with asyncio.timeout(PATIENCE):
            assert await self.reader.readexactly(len(data)) == data

    async def end(self) -> None:
        async with asyncio.timeout(PATIENCE):
            assert not await self.reader.read()

    def vanish(self) -> None:
        """Reset the connection."""
        self.writer.transport.abort()

    async def hang_up(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class Relay:
    """A listener whose connections are links, with one clock and one owner."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.events = Events()
        self._accepting: list[Link] = []
        self._one_at_a_time = asyncio.Lock()
        self._clean_up = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accepting.pop, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exc) -> None:
        await self._clean_up.aclose()
        self._server.close()
        await self._server.wait_closed()

    async def accept(self, *, events=None, receive_bytes: int | None = None, **limits) -> tuple[Link, Peer]:
        """A new link and its peer. ``receive_bytes`` makes the peer's kernel buffer small."""
        async with self._one_at_a_time:
            return await self._accept(events or self.events, receive_bytes, dataclasses.replace(LIMITS, **limits))

    async def _accept(self, events: Events, receive_bytes: int | None, limits: ForwarderLimits) -> tuple[Link, Peer]:
        link = Link(limits, events, self.clock)
        self._accepting.append(link)
        connection = socket.socket()
        connection.setblocking(False)
        if receive_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        await asyncio.get_running_loop().sock_connect(connection, self._server.sockets[0].getsockname())
        peer = Peer(*await asyncio.open_connection(sock=connection, limit=receive_bytes or 2**16))
        self._clean_up.push_async_callback(peer.hang_up)
        await link.connected.wait()
        self._clean_up.callback(link.transport.abort)
        return link, peer


@pytest.fixture
def make_relay() -> type[Relay]:
    """For tests that bring their own loop."""
    return Relay


@pytest.fixture
async def relay():
    async with Relay() as relay:
        yield relay


@pytest.fixture
def turns_until():
    """Let the loop turn until something holds that nobody announces."""

    async def turns(holds) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():  # noqa: ASYNC110 - see above
                await asyncio.sleep(0)

    return turns


@pytest.fixture
def limits() -> ForwarderLimits:
    return LIMITS


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
