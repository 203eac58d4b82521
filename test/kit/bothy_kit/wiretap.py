"""A TCP way that keeps every byte that passes, and what HTTP and WebSocket say in it.

It runs on a thread of its own, so that whoever is recorded may block this one.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_CHUNK = 64 * 1024
_LENGTHS = {126: 2, 127: 8}
"""RFC 6455, 5.2: these lengths say in how many bytes the length follows."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of HTTP/1.1. ``line`` is its first one; names of headers are in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Half:
    """What one end of a connection said."""

    raw: bytearray = field(default_factory=bytearray)

    def read(self) -> tuple[list[Message], list[str | bytes]]:
        """Its messages of HTTP, and behind an upgrade those of the WebSocket, control frames left out."""
        messages, rest = [], bytes(self.raw)
        while b"\r\n\r\n" in rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            line, *fields = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
            length = int(headers.get("content-length", 0))
            messages.append(Message(line, headers, rest[:length]))
            rest = rest[length:]
            if "upgrade" in headers and (" 101 " in line or line.startswith("GET ")):
                return messages, list(_websocket(rest))
        return messages, []


@dataclass(slots=True)
class Call:
    """One connection: what the caller said, and what it heard."""

    asked: Half = field(default_factory=Half)
    answered: Half = field(default_factory=Half)


class Wiretap:
    """Made by :func:`wiretap`. ``calls`` are in the order in which they began."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.port = 0
        self.calls: list[Call] = []
        self._target = target
        self._carrying: set[asyncio.Task[None] | None] = set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until both ends have gone."""
        self._carrying.add(asyncio.current_task())  # a stream holds its task weakly
        call = Call()
        self.calls.append(call)
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        ways = (_pump(reader, there_writer, call.asked), _pump(there_reader, writer, call.answered))
        try:
            await asyncio.gather(*ways)
        finally:
            for each in (writer, there_writer):
                each.transport.abort()


@contextmanager
def wiretap(target: tuple[str, int]) -> Iterator[Wiretap]:
    """A way to ``target`` for the block; its connections end with it."""
    tap, up, loop = Wiretap(target), threading.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        async with await asyncio.start_server(tap.carry, "127.0.0.1", 0) as server:
            tap.port = server.sockets[0].getsockname()[1]
            up.set()
            await asyncio.Event().wait()

    serving = loop.create_task(serve())

    def run() -> None:
        with suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(_until_cancelled(serving))

    thread = threading.Thread(target=run, name="wiretap")
    thread.start()
    up.wait()
    try:
        yield tap
    finally:
        loop.call_soon_threadsafe(serving.cancel)
        thread.join()


async def _until_cancelled(serving: asyncio.Task[None]) -> None:
    """The runner cancels what still carries, and closes the loop."""
    await serving


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, half: Half) -> None:
    with suppress(OSError):  # the end of a connection has many names
        while data := await reader.read(_CHUNK):
            half.raw += data
            writer.write(data)
            await writer.drain()
        writer.write_eof()


def _websocket(data: bytes) -> Iterator[str | bytes]:
    """The messages of one end (RFC 6455, 5.2); one that is not whole is left out."""
    kind, parts = 0, []
    while len(data) >= 2:
        final, opcode, masked, length = data[0] & 0x80, data[0] & 0x0F, data[1] & 0x80, data[1] & 0x7F
        at = 2 + _LENGTHS.get(length, 0)
        if length in _LENGTHS:
            length = int.from_bytes(data[2:at], "big")
        mask = data[at : at + 4] if masked else bytes(4)
        at += 4 if masked else 0
        payload, whole, data = data[at : at + length], len(data) >= at + length, data[at + length :]
        if not whole:
            return
        if opcode >= 8:
            continue
        kind = opcode or kind
        parts.append(bytes(byte ^ key for byte, key in zip(payload, itertools.cycle(mask), strict=False)))
        if final:
            message, parts = b"".join(parts), []
            yield message.decode() if kind == 1 else message
