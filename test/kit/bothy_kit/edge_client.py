"""Plain requests to an edge, byte for byte as given; no client library, since those normalise what they send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket"}
"""The headers that ask for a socket."""


@asynccontextmanager
async def connection(url: str) -> AsyncIterator[Stream]:
    """A connection to the edge at ``url``, for the block."""
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(stream: Stream, path: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str]]:
    """One GET on a connection; status and headers. The path is sent as given, byte for byte."""
    reader, writer = stream
    lines = [f"GET {path} HTTP/1.1", "Host: bothy.example.com:8443", *(f"{k}: {v}" for k, v in (headers or {}).items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip("\r\n").split("\r\n")
    answer = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    if "content-length" in answer:
        await reader.readexactly(int(answer["content-length"]))
    return int(first.split(" ")[1]), answer
