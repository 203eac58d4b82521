"""What the control connection still has to say. Each thing waits once, so a server that does not read costs no memory."""

from __future__ import annotations

import asyncio
from uuid import UUID

from bothy_host.dial import Socket
from bothy_wire.frames import HostHeartbeat, HostReport, HostSessionEnded, HostSessionStarted, encode

Spoken = HostReport | HostHeartbeat | HostSessionStarted | HostSessionEnded


class Outbox:
    """Frames in the order in which they were first put; one of each kind, of sessions one of each kind and session."""

    def __init__(self) -> None:
        self._frames: dict[tuple[type[Spoken], UUID | None], Spoken] = {}
        self._filled = asyncio.Event()

    def put(self, frame: Spoken) -> None:
        """Queue a frame, in place of one that waits and says the same of an earlier time."""
        session_id = frame.session_id if isinstance(frame, HostSessionStarted | HostSessionEnded) else None
        self._frames[type(frame), session_id] = frame
        self._filled.set()

    async def empty_into(self, socket: Socket) -> None:
        """Send until the socket is closed, which raises ``ConnectionClosed``, or the task is cancelled."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._frames:
                await socket.send(encode(self._frames.pop(next(iter(self._frames)))))
