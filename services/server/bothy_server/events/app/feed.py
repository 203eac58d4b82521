"""One reader's feed: what waits for it to be sent, bounded, and its end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bothy_server.kernel.caller import Caller
from bothy_server.kernel.clock import Clock


@dataclass(frozen=True, slots=True)
class Told:
    """Something that a reader is told. ``position`` is its place in the event log, where it has one.

    Without a ``type`` it only says how far the feed is.
    """

    type: str | None
    data: Mapping[str, Any]
    position: int | None = None


QUIET = Told(None, {})
"""Nothing happened for a while."""


class Feed:
    """What waits for one reader. Who lets too much wait is slow: the feed ends, and the reader comes again with its id."""

    def __init__(self, caller: Caller, most: int) -> None:
        """At most ``most`` wait."""
        self.caller = caller
        self.slow = False
        self._most = most
        self._waiting: deque[Told] = deque()
        self._news = asyncio.Event()
        self._over = False

    @property
    def over(self) -> bool:
        """Nothing comes any more; something may wait."""
        return self._over

    def tell(self, told: Told) -> None:
        """Something more, unless it is over."""
        if self._over:
            return
        self._waiting.append(told)
        self._news.set()
        if len(self._waiting) > self._most:
            self.slow = True
            self.cut()

    def end(self, told: Told) -> None:
        """This is the last."""
        if not self._over:
            self._waiting.append(told)
            self._over = True
            self._news.set()

    def cut(self) -> None:
        """It ends now; what waits is not told any more."""
        self._waiting.clear()
        self._over = True
        self._news.set()

    def take(self) -> Iterator[Told]:
        """What waits, oldest first."""
        while self._waiting:
            yield self._waiting.popleft()

    async def wait(self, clock: Clock, patience: float) -> bool:
        """Until there is something, or the end; False when neither came within ``patience`` seconds."""
        self._news.clear()
        timer = clock.call_at(clock.monotonic() + patience, self._news.set)
        try:
            if not (self._waiting or self._over):
                await self._news.wait()
        finally:
            timer.cancel()
        return bool(self._waiting) or self._over
