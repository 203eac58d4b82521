"""Server-sent events: an answer that goes on until one of both ends has enough (HTML Standard, section 9.2).

A node that tells nobody anything keeps a connection by comments; a reader that takes nothing is cut, and comes back with
the last id that it has seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from bothy_server.platform.bounded_http import ABORT

MEDIA_TYPE = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSentEvent:
    """One block. ``event`` is left out of a block that only says how far the stream is: readers take the id, and no more.
    Without either it is a comment, which keeps the connection.

    ``data`` is what ``msgspec`` encodes to one line of JSON.
    """

    event: str | None = None
    data: Any = None
    id: str | None = None

    def encode(self) -> bytes:
        """As it is sent."""
        lines = [] if self.id is None else [b"id: %b\n" % self.id.encode()]
        if self.event is not None:
            lines += [b"event: %b\n" % self.event.encode(), b"data: %b\n" % msgspec.json.encode(self.data)]
        return b"".join([*(lines or [b":\n"]), b"\n"])


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """Events as they come, until one of both ends has enough (docs/spec/protocol.md, Events)."""

    events: AsyncIterator[ServerSentEvent]
    retry: float
    """Seconds that a reader is told to wait before it comes again."""
    patience: float
    """Seconds that a reader may take nothing."""
    ended: Callable[[], None]
    """Called once, however it ends."""

    def response(self) -> Response:
        """The answer that carries it."""
        return _Answer(self)


class _Answer(StreamingResponse):
    def __init__(self, stream: EventStream) -> None:
        # What stands between may neither keep lines back nor keep them at all.
        headers = {"cache-control": "no-store, no-transform", "x-accel-buffering": "no"}
        super().__init__(_blocks(stream), headers=headers, media_type=MEDIA_TYPE)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(self._stream.patience):
                    await send(message)
            except TimeoutError:
                scope["extensions"][ABORT]()
                await asyncio.Event().wait()  # the end of the connection ends this, too

        try:
            await super().__call__(scope, receive, send_in_time)
        finally:
            self._stream.ended()


async def _blocks(stream: EventStream) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % round(stream.retry * 1000)
    async for event in stream.events:
        yield event.encode()
