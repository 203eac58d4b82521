"""A reader of server-sent events, block by block, as the console reads them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx

from bothy_kit.fake_device import FakeDevice


@dataclass(frozen=True, slots=True)
class Block:
    """One event. ``id`` is its own, not one that was seen before."""

    event: str
    data: dict[str, Any]
    id: str | None


class EventReader:
    """One stream. ``last_id`` is what the next one is to go on from; ``comments`` and ``retry_ms`` are what else it heard."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.last_id: str | None = None
        self.comments = 0
        self.retry_ms: int | None = None
        self._blocks = self._read()

    async def next(self) -> Block:
        """The next event. Raises ``StopAsyncIteration`` at the end of the stream."""
        return await anext(self._blocks)

    async def until(self, event: str, **data: object) -> list[Block]:
        """The events up to one with this name and these data; that one is the last."""
        found = [await self.next()]
        while not (found[-1].event == event and found[-1].data | data == found[-1].data):
            found.append(await self.next())
        return found

    async def rest(self) -> list[Block]:
        """All events up to the end of the stream."""
        return [each async for each in self._blocks]

    async def _read(self) -> AsyncIterator[Block]:
        name = data = own_id = None
        async for line in self.response.aiter_lines():
            field, _, value = line.partition(": ")
            match field:
                case "" if name is not None and data is not None:
                    yield Block(name, json.loads(data), own_id)
                    name = data = own_id = None
                case "":
                    name = data = own_id = None
                case ":":
                    self.comments += 1
                case "event":
                    name = value
                case "data":
                    data = value
                case "id":
                    own_id = self.last_id = value
                case "retry":
                    self.retry_ms = int(value)
                case _:
                    raise AssertionError(line)


@asynccontextmanager
async def reading(
    device: FakeDevice, *, url: str | None = None, after: str | None = None
) -> AsyncIterator[EventReader]:
    """A stream of a device, from a node or an edge; ``after`` is the id to go on from."""
    headers = {} if after is None else {"Last-Event-ID": after}
    async with device.streaming("/events", headers, url=url) as response:
        yield EventReader(response)
