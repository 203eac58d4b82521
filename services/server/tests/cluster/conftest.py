"""What the tests of signals share: a clock, a recording handler, a way to PostgreSQL that can be spoilt."""

import asyncio
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from uuid import UUID

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from bothy_server.cluster.app.dispatcher import Dispatcher
from bothy_server.cluster.app.inbox import InboxLimits
from bothy_server.cluster.domain.signal import SignalTable
from bothy_server.hosts.domain.signals import HostClose, HostGone, HostPresent
from bothy_server.platform.clock import ClusterClock
from bothy_server.terminal.domain.signals import SessionOpen, SessionPaired, SessionRedial

KINDS = (SessionOpen, SessionPaired, SessionRedial, HostClose, HostPresent, HostGone)
PATIENCE_S = 20


class Recorder:
    """A handler that remembers, and fails or stalls on demand."""

    def __init__(self):
        self.batches = []
        self.gaps = 0
        self.fail_handle = 0
        self.fail_gap = 0
        self.during_gap = None
        self.open = asyncio.Event()
        self.open.set()
        self._news = asyncio.Event()

    @property
    def heard(self):
        return [signal for batch in self.batches for signal in batch]

    async def handle(self, signals):
        self.batches.append(list(signals))
        self._news.set()
        await self.open.wait()
        if self.fail_handle:
            self.fail_handle -= 1
            raise RuntimeError("handle")

    async def on_gap(self):
        self.gaps += 1
        self._news.set()
        if self.during_gap:
            await self.during_gap()
        if self.fail_gap:
            self.fail_gap -= 1
            raise RuntimeError("gap")

    async def until(self, holds):
        async with asyncio.timeout(PATIENCE_S):
            while not holds(self):
                self._news.clear()
                await self._news.wait()


class SpoilableLink:
    """A TCP way to PostgreSQL on which a test cuts, stalls or silences. Faults are verbs."""

    def __init__(self, url):
        self._database_url = make_url(url)
        self._target = conninfo_to_dict(url)
        self._server = None
        self._port = 0
        self._writers = set()
        self._pumps = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._notifies = True
        self._stall_from = None
        self._stalled = asyncio.Event()

    async def heal(self):
        self._flowing.set()
        self._notifies = True
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
            self._port = self._server.sockets[0].getsockname()[1]

    def stall(self):
        """Take bytes and deliver none, in either direction."""
        self._flowing.clear()

    def stall_from(self, word):
        """Stall as soon as a client sends ``word``, which arrives nowhere."""
        self._stall_from = word.encode()

    async def stalled(self):
        """Until that happened."""
        async with asyncio.timeout(PATIENCE_S):
            await self._stalled.wait()

    def drop_notifications(self):
        """What a transaction pooler does: every answer arrives, no notification does."""
        self._notifies = False

    async def cut(self):
        """Break what is open and refuse what comes."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None

    async def close(self):
        await self.cut()
        for pump in list(self._pumps):
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    @property
    def url(self):
        plain = {"sslmode": "disable", "gssencmode": "disable"}
        return self._database_url.set(host="127.0.0.1", port=self._port, query=plain).render_as_string(
            hide_password=False
        )

    async def _accept(self, reader, writer):
        self._pumps.add(asyncio.current_task())
        self._writers.add(writer)
        host, port = self._target.get("host", "127.0.0.1"), self._target.get("port", 5432)
        if host.startswith("/"):
            back_reader, back_writer = await asyncio.open_unix_connection(Path(host) / f".s.PGSQL.{port}")
        else:
            back_reader, back_writer = await asyncio.open_connection(host, port)
        self._writers.add(back_writer)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                async with asyncio.TaskGroup() as tasks:
                    there = tasks.create_task(self._forward(reader, back_writer))
                    back = tasks.create_task(self._answer(back_reader, writer))
                    await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
                    there.cancel()
                    back.cancel()
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for each in (writer, back_writer):
                each.transport.abort()
                self._writers.discard(each)
            self._pumps.discard(asyncio.current_task())

    async def _forward(self, reader, writer):
        while data := await reader.read(65536):
            if self._stall_from is not None and self._stall_from in data:
                self.stall()
                self._stalled.set()
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()

    async def _answer(self, reader, writer):
        while True:
            head = await reader.readexactly(5)
            body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
            await self._flowing.wait()
            if self._notifies or head[:1] != b"A":
                writer.write(head + body)
                await writer.drain()


def make(kind, number=1):
    return kind(*(UUID(int=number) for _ in fields(kind)))


@pytest.fixture
def clock():
    return ClusterClock()


@pytest.fixture
def table():
    return SignalTable(KINDS)


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def limits():
    return InboxLimits(waiting=100, gap_retry=0.01)


@pytest.fixture
async def dispatcher(table, recorder, clock, limits):
    """Every kind goes to the recorder; runs."""
    dispatcher = Dispatcher(table, {kind: [recorder] for kind in KINDS}, clock, limits)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(dispatcher.run())
        yield dispatcher
        running.cancel()


@pytest.fixture
def sample():
    """``sample(kind, number)``: a signal."""
    return make


@pytest.fixture
def empty_url(postgres):
    """A database without tables: NOTIFY needs none."""
    name = postgres.create_database()
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture
async def link(empty_url):
    link = SpoilableLink(empty_url)
    await link.heal()
    yield link
    await link.close()
