"""A side of a session as a test drives it: the real socket, one call per step of the protocol."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from bothy_wire.frames import (
    DataHello,
    Decoder,
    Frame,
    SideAccepted,
    SidePaired,
    SideReady,
    SideUnpaired,
    StreamHello,
    encode,
)

PATIENCE_S = 15.0
"""A step that takes longer has failed; no step waits for it to pass."""

F = TypeVar("F")
_frames = Decoder(DataHello | StreamHello | SideAccepted | SidePaired | SideUnpaired)


@dataclass(frozen=True, slots=True)
class Closed:
    """How a socket ended."""

    code: int
    reason: str
    messages: list[str | bytes] = field(default_factory=list)
    """What came before the end and was not waited for."""


class FakeSide:
    """One stream or data socket. What a test does not ask for stays in the socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    @classmethod
    async def dial(cls, url: str, subprotocol: str | None, **options: Any) -> FakeSide:
        """Connect; ``url`` is http(s). The server's first frame is not read."""
        subprotocols = None if subprotocol is None else [subprotocol]
        address = url.replace("http", "ws", 1)
        options = {"compression": None, "ping_interval": None, "proxy": None, "close_timeout": 1, **options}
        return cls(await connect(address, subprotocols=subprotocols, **options))  # type: ignore[arg-type]

    async def expect(self, kind: type[F]) -> F:
        """The next message, which must be this frame."""
        frame = _frames.decode(await self.receive())
        assert isinstance(frame, kind), f"{type(frame).__name__} instead of {kind.__name__}"
        return frame

    async def receive(self) -> str | bytes:
        """The next message; raises ``ConnectionClosed``."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.socket.recv()

    async def send(self, message: bytes | str | Frame) -> None:
        """Send binary, text or a frame."""
        await self.socket.send(encode(message) if isinstance(message, Frame) else message)

    async def ready(self) -> None:
        """Answer ``side.unpaired``."""
        await self.send(SideReady())

    async def closed(self) -> Closed:
        """Read until the socket ends, however it does."""
        messages: list[str | bytes] = []
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    messages.append(await self.socket.recv())
        except ConnectionClosed:
            return Closed(self.socket.close_code or 1006, self.socket.close_reason or "", messages)

    async def close(self, code: int = 1000) -> None:
        """Leave with a close frame."""
        await self.socket.close(code)

    def cut(self) -> None:
        """Lose the connection without a word."""
        self.socket.transport.abort()
