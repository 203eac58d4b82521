"""A transaction pooler in front of PostgreSQL, as small as one can be: what a session leaves behind is lost.

Clients share connections to the server. A client has one from its first message of a transaction until the server is idle
again; then the next client gets it. LISTEN stays with a connection that is somebody else's by then, and what the server
sends unasked reaches nobody. Passwords are not spoken: the server has to trust its socket's folder.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit, urlunsplit

_SSL_REQUEST, _GSS_REQUEST, _PROTOCOL = 80877103, 80877104, 196608
_AUTHENTICATED = b"R" + struct.pack("!II", 8, 0)
_IDLE = b"Z" + struct.pack("!I", 5) + b"I"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class _Pool:
    path: str
    startup: bytes
    free: list[Streams] = field(default_factory=list)
    told: bytes = b""

    async def take(self) -> Streams:
        """The one that was idle longest: hardly ever that of the same client again."""
        if len(self.free) > 1:
            return self.free.pop(0)
        reader, writer = await asyncio.open_unix_connection(self.path)
        writer.write(self.startup)
        told = b""
        while (message := await _message(reader)) != _IDLE:
            if message[:1] in {b"S", b"K"}:
                told += message
        self.told = told
        return reader, writer


@asynccontextmanager
async def transaction_pooler(url: str) -> AsyncIterator[str]:
    """Run it for the block; yields the address of the same database by way of it. ``url`` leads to a unix socket."""
    made = urlsplit(url)
    path = f"{parse_qs(made.query)['host'][0]}/.s.PGSQL.5432"
    words = ("user", made.username or "", "database", made.path.lstrip("/"))
    body = struct.pack("!I", _PROTOCOL) + b"".join(word.encode() + b"\0" for word in words) + b"\0"
    pool = _Pool(path, struct.pack("!I", len(body) + 4) + body)
    clients: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        clients.add(task)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await _serve(pool, reader, writer)
        finally:
            clients.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield urlunsplit(("postgresql", f"{made.username}@127.0.0.1:{port}", made.path, "sslmode=disable", ""))
    finally:
        server.close()
        for task in tuple(clients):
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        for _, writer in pool.free:
            writer.close()


async def _serve(pool: _Pool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        (length,) = struct.unpack("!I", await reader.readexactly(4))
        (code,) = struct.unpack("!I", (await reader.readexactly(length - 4))[:4])
        if code not in {_SSL_REQUEST, _GSS_REQUEST}:
            break
        writer.write(b"N")
    pool.free.append(await pool.take())
    writer.write(_AUTHENTICATED + pool.told + _IDLE)
    while (asked := await _message(reader))[:1] != b"X":
        server = await pool.take()
        await _transaction(server, asked, reader, writer)
        pool.free.append(server)


async def _transaction(
    server: Streams, asked: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Until the server is idle; whatever it says on its own, it says to whoever has it."""
    from_server, to_server = server
    while True:
        to_server.write(asked)
        if asked[:1] in {b"Q", b"S"}:
            while (answer := await _message(from_server))[:1] != b"Z":
                if answer[:1] != b"A":
                    writer.write(answer)
            writer.write(answer)
            if answer == _IDLE:
                return
        asked = await _message(reader)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
