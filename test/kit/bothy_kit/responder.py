"""A tiny upstream server that tells which node got which request; it stands in for an api node behind a real edge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bothy_kit.nginx import Node


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived: the path as sent, header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass(slots=True)
class Responder:
    """A node that answers 200, or 101 and then an echo to an upgrade, with its name in ``Bothy-Node``."""

    name: str
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    _open: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    @property
    def node(self) -> Node:
        """Name, host and port for ``bothy_kit.nginx.edge``."""
        return self.name, "127.0.0.1", self.port

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either end closes it."""
        task = asyncio.create_task(self._serve(reader, writer))
        self._open[task] = writer
        task.add_done_callback(self._open.pop)

    async def close(self) -> None:
        """Close every connection and wait for its end."""
        for writer in self._open.values():
            writer.close()
        await asyncio.gather(*self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await read_request(reader):
                self.requests.append(request)
                await reader.readexactly(int(request.headers.get("content-length", 0)))
                if "upgrade" in request.headers:
                    writer.write(self._answer("101 Switching Protocols", "Connection: Upgrade\r\nUpgrade: websocket"))
                    while data := await reader.read(65536):
                        writer.write(data)
                        await writer.drain()
                    return
                writer.write(self._answer("200 OK", "Content-Length: 0"))
        except ConnectionError:
            pass
        finally:
            writer.close()

    def _answer(self, status: str, headers: str) -> bytes:
        return f"HTTP/1.1 {status}\r\nBothy-Node: {self.name}\r\n{headers}\r\n\r\n".encode()


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request head of a connection; ``None`` at its end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    return Request(method, path, {name.lower(): value.strip() for name, _, value in pairs})


@asynccontextmanager
async def responders(*names: str) -> AsyncIterator[list[Responder]]:
    """One responder for each name, on loopback, for the block."""
    nodes = [Responder(name) for name in names]
    servers = [await asyncio.start_server(node.accept, "127.0.0.1", 0, backlog=512) for node in nodes]
    for node, server in zip(nodes, servers, strict=True):
        node.port = server.sockets[0].getsockname()[1]
    try:
        yield nodes
    finally:
        for server in servers:
            server.close()
        for node in nodes:
            await node.close()
