"""A TCP way that a test can spoil, in front of a node or in front of PostgreSQL. Every fault is a verb.

A fault falls on all connections of the link, or on those of one ``application``: a client of PostgreSQL names itself when
it connects (``bothy-terminal-ephemeral`` is a node's listener).
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bothy_kit.processes import reserved_port

_CHUNK = 64 * 1024
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of no time at all: the socket ends with RST."""

Target = Path | tuple[str, int]


@dataclass(eq=False, slots=True)
class _Way:
    """One accepted connection and its counterpart at the target."""

    application: str | None
    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    notifies: bool = True

    def reset(self) -> None:
        for writer in self.writers:
            link = writer.get_extra_info("socket")
            with suppress(OSError):  # it went already
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()


class Link:
    """Made by :func:`link`. Takes connections at ``port`` of loopback, and carries them to its target."""

    def __init__(self, port: int, target: Target, *, speaks_postgres: bool) -> None:
        self.port = port
        self._target = target
        self._speaks_postgres = speaks_postgres
        self._server: asyncio.Server | None = None
        self._ways: set[_Way] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._paused: set[str | None] = set()
        self._silent: set[str | None] = set()

    # ---- faults ---------------------------------------------------------------------------------------------------

    def pause(self, application: str | None = None) -> None:
        """Take bytes and deliver none, in either direction, also on connections to come. Nothing is lost."""
        self._paused.add(application)
        self._apply()

    def drop_signals(self, application: str | None = None) -> None:
        """Lose what PostgreSQL notifies, as a transaction pooler does; every answer arrives."""
        self._silent.add(application)
        self._apply()

    def cut(self, application: str | None = None) -> None:
        """Reset the open connections; new ones are taken."""
        for way in list(self._ways):
            if _falls_on({application}, way):
                way.reset()

    async def refuse(self) -> None:
        """Take no new connection; open ones stay."""
        if self._server is not None:
            server, self._server = self._server, None
            server.close()

    def flow(self) -> None:
        """End every pause."""
        self._paused.clear()
        self._apply()

    async def heal(self) -> None:
        """No fault any more. What was paused flows on; what was cut stays cut."""
        self._silent.clear()
        self.flow()
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    async def close(self) -> None:
        """Refuse and cut; nothing is left."""
        await self.refuse()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _apply(self) -> None:
        for way in self._ways:
            way.notifies = not _falls_on(self._silent, way)
            if _falls_on(self._paused, way):
                way.flowing.clear()
            else:
                way.flowing.set()

    # ---- carrying -------------------------------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # The end of a connection has many names, and close() cancels: nobody asks how it ended.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                first = await reader.read(_CHUNK)
                there_reader, there = await self._dial()
                way = _Way(_application(first) if self._speaks_postgres else None, (writer, there))
                self._ways.add(way)
                self._apply()
                try:
                    await self._carry(way, reader, there_reader, first)
                finally:
                    self._ways.discard(way)
                    there.transport.abort()
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, Path):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection(*self._target)

    async def _carry(
        self, way: _Way, reader: asyncio.StreamReader, there_reader: asyncio.StreamReader, first: bytes
    ) -> None:
        here, there = way.writers
        answers = _messages if self._speaks_postgres else _chunks
        tasks = (
            asyncio.create_task(_pump(way, _chunks(reader, first), there)),
            asyncio.create_task(_pump(way, answers(there_reader), here)),
        )
        try:
            await asyncio.gather(*tasks)
            for writer in way.writers:
                writer.close()
                await writer.wait_closed()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def link(target: Target, *, speaks_postgres: bool = False) -> AsyncIterator[Link]:
    """A link without faults. Its port stays its own while it refuses."""
    with reserved_port() as port:
        made = Link(port, target, speaks_postgres=speaks_postgres)
        await made.heal()
        try:
            yield made
        finally:
            await made.close()


@asynccontextmanager
async def database_link(database_url: str) -> AsyncIterator[tuple[Link, str]]:
    """A link to PostgreSQL, and the address by way of it."""
    info: dict[str, Any] = conninfo_to_dict(database_url)
    host, port = str(info.get("host", "127.0.0.1")), int(info.get("port") or 5432)
    target = Path(host) / f".s.PGSQL.{port}" if host.startswith("/") else (host, port)
    async with link(target, speaks_postgres=True) as made:
        # The name of the application must be readable, so nothing is encrypted.
        plain: dict[str, Any] = {"host": "127.0.0.1", "port": made.port, "sslmode": "disable", "gssencmode": "disable"}
        yield made, make_conninfo("", **(info | plain))


def _falls_on(fault: set[str | None], way: _Way) -> bool:
    return None in fault or (way.application is not None and way.application in fault)


def _application(startup: bytes) -> str | None:
    """The name in a startup packet of PostgreSQL, which is a list of words that end in zero."""
    words = startup.split(b"\0")
    return words[words.index(b"application_name") + 1].decode() if b"application_name" in words else None


async def _chunks(reader: asyncio.StreamReader, first: bytes = b"") -> AsyncIterator[bytes]:
    data = first or await reader.read(_CHUNK)
    while data:
        yield data
        data = await reader.read(_CHUNK)


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """What a server of PostgreSQL says, message by message."""
    while True:
        head = await reader.readexactly(5)
        yield head + await reader.readexactly(int.from_bytes(head[1:]) - 4)


async def _pump(way: _Way, source: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    async for data in source:
        await way.flowing.wait()
        if way.notifies or not data.startswith(b"A"):
            writer.write(data)
            await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
