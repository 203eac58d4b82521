"""The messages of one control socket: read in order, written in order by one task."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from bothy_server.platform.uvicorn_takeover import MESSAGE_LIMIT, PING
from bothy_wire.close_codes import CloseCode, fit_reason
from bothy_wire.frames import Frame, encode


class Refusal(Exception):  # noqa: N818 - an outcome of reading
    """Close with this code."""

    def __init__(self, code: CloseCode, reason: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.reason = reason


class Done(Exception):  # noqa: N818 - ends a task group
    """The close frame is written."""


class Messages:
    """``waiting`` frames may wait to be written. How long that may take is for the owner to bound."""

    def __init__(self, websocket: WebSocket, waiting: int) -> None:
        """``websocket`` is accepted."""
        self._websocket = websocket
        self._waiting = waiting
        self._outgoing: asyncio.Queue[Frame | tuple[int, str]] = asyncio.Queue(waiting + 1)

    def send(self, frame: Frame) -> bool:
        """Queue a frame; False when too many wait."""
        if self._outgoing.qsize() >= self._waiting:
            return False
        self._outgoing.put_nowait(frame)
        return True

    def close(self, code: int, reason: str) -> None:
        """Queue the close frame. To be called once, and nothing after it."""
        self._outgoing.put_nowait((int(code), fit_reason(reason)))

    async def write(self) -> None:
        """Write what is queued; ends by :class:`Done`."""
        while True:
            item = await self._outgoing.get()
            if isinstance(item, tuple):
                await self._websocket.close(*item)
                raise Done
            await self._websocket.send_text(encode(item))

    async def text(self, within: float, late: CloseCode) -> str:
        """The next message, which must be text and come within so many seconds. Raises :class:`Refusal`."""
        try:
            async with asyncio.timeout(within):
                message: dict[str, Any] = dict(await self._websocket.receive())
        except TimeoutError as error:
            raise Refusal(late) from error
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", CloseCode.ABNORMAL))
        text: str | None = message.get("text")
        if text is None:
            raise Refusal(CloseCode.PROTOCOL_VIOLATION, "text frames only")
        return text

    async def ping(self, payload: bytes) -> None:
        """Ping; returns at the pong with this payload. Raises ``OSError`` when the socket is not open."""
        await self._websocket.scope["extensions"][PING](payload)

    def limit(self, size_bytes: int) -> None:
        """From now on the peer may send messages as long as this."""
        self._websocket.scope["extensions"][MESSAGE_LIMIT](size_bytes)
