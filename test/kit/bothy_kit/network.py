"""The network between one program and the edge, as a test spoils it: slow, silent, or broken at an exact byte.

It lives in a thread of its own, so that whoever spoils it and the programs at both ends may be as slow as they like. Every
fault is a verb. ``up`` is the way from the program to the edge, ``down`` the way back.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

Direction = Literal["up", "down"]

_CHUNK = 16 * 1024
_UNDER_WAY = 64
"""Chunks that one direction of a connection holds before it stops reading."""
_STEP_S = 0.02
"""A throttled direction carries at once what it may carry in this time."""
_ACT_S = 30.0
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of no time at all: the socket ends with RST."""


class Network:
    """Made by :func:`network`. Programs dial ``url``."""

    def __init__(self, target: tuple[str, int], loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        self._fair = asyncio.Event()
        self._fair.set()
        self.delay_s = 0.0
        """Each direction takes this long."""
        self.rates: dict[Direction, float | None] = {"up": None, "down": None}
        """Bytes per second; ``None`` is as fast as it goes."""

    # ---- faults -----------------------------------------------------------------------------------------------------

    def slow(self, *, delay_s: float = 0.0, up: float | None = None, down: float | None = None) -> None:
        """Delay, and throttle to bytes per second each way."""
        self.delay_s, self.rates = delay_s, {"up": up, "down": down}

    def silence(self) -> None:
        """Nothing arrives any more, no end and no break either; new connections are as mute. Healed, all of it flows on."""
        self._act(self._fair.clear)

    def forget(self) -> None:
        """As :meth:`silence`, for the connections of now and for ever: what stood between them lost its table."""
        self._each(_Connection.die)

    def cut(self) -> None:
        """Reset the connections of now."""
        self._each(lambda connection: connection.end(reset=True))

    def cut_after(self, count: int, direction: Direction) -> threading.Event:
        """Carry exactly ``count`` more bytes in this direction on each connection of now, then end it both ways.

        The event is set when the first of them has ended so.
        """
        happened = threading.Event()
        self._each(lambda connection: connection.flows[direction].allow(count, happened.set))
        return happened

    def half_close(self, direction: Direction) -> None:
        """End this direction of the connections of now; the other one goes on."""
        self._each(lambda connection: connection.flows[direction].end())

    def heal(self) -> None:
        """No fault any more. What was held back flows on; what ended or was forgotten stays so."""
        self.slow()
        self._each(_Connection.spare)
        self._act(self._fair.set)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    def _each(self, act: Callable[[_Connection], object]) -> None:
        def on_all() -> None:
            for connection in self._connections:
                act(connection)

        self._act(on_all)

    def _act(self, act: Callable[[], object]) -> None:
        """Do it in the thread, and wait for it."""

        async def run() -> None:
            act()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(_ACT_S)

    # ---- carrying, in the thread ------------------------------------------------------------------------------------

    async def serve(self, ready: Callable[[], None]) -> None:
        """Take connections until cancelled."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        try:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            ready()
            await asyncio.get_running_loop().create_future()
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def fair(self) -> None:
        """Wait while there is silence."""
        await self._fair.wait()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.CancelledError):  # nobody dialled there, or the network goes
                there_reader, there_writer = await asyncio.open_connection(*self._target)
                connection = _Connection(self, (reader, writer), (there_reader, there_writer))
                self._connections.add(connection)
                try:
                    await connection.carry()
                finally:
                    self._connections.discard(connection)
        finally:
            writer.transport.abort()
            self._tasks.discard(task)


def _nothing() -> None:
    """Nobody is told."""


class _Connection:
    """Two flows. It ends when both have, and both ways at once when it is told to."""

    def __init__(
        self,
        network: Network,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._writers = (here[1], there[1])
        self._reset: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.flows: dict[Direction, _Flow] = {
            "up": _Flow(network, "up", here[0], there[1], self.end),
            "down": _Flow(network, "down", there[0], here[1], self.end),
        }

    def end(self, *, reset: bool) -> None:
        """End it behind what was brought, or with a reset at once."""
        if not self._reset.done():
            self._reset.set_result(reset)

    def spare(self) -> None:
        """Carry on behind the byte that was to be the last."""
        for flow in self.flows.values():
            flow.allow(None, _nothing)

    def die(self) -> None:
        """Carry nothing any more, and tell nobody."""
        for flow in self.flows.values():
            flow.die()

    async def carry(self) -> None:
        """Until it ends."""
        flows = asyncio.gather(*(each.run() for each in self.flows.values()))
        flows.add_done_callback(lambda _: self.end(reset=False))
        try:
            if await self._reset:
                for writer in self._writers:
                    link = writer.get_extra_info("socket")
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            else:
                for writer in self._writers:
                    writer.close()
                    await writer.wait_closed()
        finally:
            flows.cancel()
            await asyncio.gather(flows, return_exceptions=True)
            for writer in self._writers:
                writer.transport.abort()


class _Flow:
    """One direction of one connection. Its end and its break arrive like its bytes: late, or not at all."""

    def __init__(
        self,
        network: Network,
        direction: Direction,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        end_connection: Callable[..., None],
    ) -> None:
        self._network = network
        self._direction: Direction = direction
        self._reader = reader
        self._writer = writer
        self._end_connection = end_connection
        self._under_way: asyncio.Queue[tuple[float, bytes | None]] = asyncio.Queue(_UNDER_WAY)
        self._allowed: int | None = None
        self._spent: Callable[[], None] = _nothing
        self._dead = False

    def allow(self, count: int | None, spent: Callable[[], None]) -> None:
        """So many bytes more, then the connection ends and ``spent`` is told; any number with ``None``."""
        self._allowed, self._spent = count, spent

    def die(self) -> None:
        """Nothing arrives any more, and nobody is told."""
        self._dead = True

    def end(self) -> None:
        """Nothing arrives any more, and whom it would reach is told."""
        if not self._dead:
            self._dead = True
            with suppress(OSError):  # it went already
                self._writer.write_eof()

    async def run(self) -> None:
        """Until its end has arrived."""
        taking = asyncio.create_task(self._take())
        try:
            await self._bring()
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)

    async def _take(self) -> None:
        loop = asyncio.get_running_loop()
        data: bytes | None = b"-"
        while data:
            try:
                data = await self._reader.read(_CHUNK)
            except OSError:
                data = None
            await self._under_way.put((loop.time() + self._network.delay_s, data))

    async def _bring(self) -> None:
        loop = asyncio.get_running_loop()
        data: bytes | None = b"-"
        while data or self._dead:
            due, data = await self._under_way.get()
            await asyncio.sleep(due - loop.time())
            await self._network.fair()
            if self._dead:
                continue
            if data is None:
                self._end_connection(reset=True)
            elif data:
                await self._write(data)
            else:
                self.end()

    async def _write(self, data: bytes) -> None:
        while data and not self._dead:
            rate = self._network.rates[self._direction]
            piece = data[: None if rate is None else max(1, int(rate * _STEP_S))]
            if self._allowed is not None:
                piece = piece[: self._allowed]
                self._allowed -= len(piece)
            data = data[len(piece) :]
            try:
                self._writer.write(piece)
                await self._writer.drain()
            except OSError:
                return self._end_connection(reset=True)
            if self._allowed == 0:
                self._dead = True
                self._spent()
                return self._end_connection(reset=False)
            if rate is not None:
                await asyncio.sleep(len(piece) / rate)
            await self._network.fair()
        return None


@contextmanager
def network(target: tuple[str, int]) -> Iterator[Network]:
    """A network without faults in front of ``target``, for the block."""
    loop = asyncio.new_event_loop()
    made = Network(target, loop)
    ready = threading.Event()
    serving = loop.create_task(made.serve(ready.set))

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(serving)
        loop.close()

    thread = threading.Thread(target=run, name="network")
    thread.start()
    ready.wait(_ACT_S)
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(serving.cancel)
        thread.join(_ACT_S)
