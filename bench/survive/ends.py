"""What a light device and a light host share: bytes that say where they belong, and a socket that is carried until it ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from bothy_wire.backoff import Backoff, delay
from bothy_wire.close_codes import Client, retry_of

_CIRCLE = bytes(range(251))
_TURNS = _CIRCLE * (64 * 1024 // len(_CIRCLE) + 2)
_BACKOFF = Backoff()

ABNORMAL = 1006


def pattern(position: int, count: int) -> bytes:
    """The bytes of a direction from ``position`` on: what is lost, doubled or moved does not fit."""
    start = position % len(_CIRCLE)
    return _TURNS[start : start + count]


async def carry(
    socket: ClientConnection,
    receive: Callable[[str | bytes], None],
    outgoing: Callable[[], list[str | bytes]],
    stirred: asyncio.Event,
) -> int:
    """Feed what comes and send what there is, whenever ``stirred`` is set, until the socket ends; its close code."""

    async def send() -> None:
        while True:
            await stirred.wait()
            stirred.clear()
            for message in outgoing():
                await socket.send(message)

    sending = asyncio.create_task(send())
    try:
        async for message in socket:
            receive(message)
            stirred.set()
    except ConnectionClosed:
        pass  # the code is what counts
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    return socket.close_code or ABNORMAL


class Patience:
    """The steps of dialling again."""

    def __init__(self, client: Client) -> None:
        self._client: Client = client
        self._tries = 0

    def settled(self) -> None:
        """It worked: start over."""
        self._tries = 0

    async def wait(self, code: int) -> bool:
        """Wait as the code says; ``False`` when it says never."""
        retry = retry_of(code, self._client)
        if retry == "never":
            return False
        step = _BACKOFF.later if retry == "later" else _BACKOFF.soon
        await asyncio.sleep(delay(step, self._tries, _BACKOFF.cap, random.random()))
        self._tries += 1
        return True
