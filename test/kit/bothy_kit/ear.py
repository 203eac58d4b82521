"""Hears what everybody notifies on one channel of a database."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Identifier


class Ear:
    """A connection that listens beside the nodes."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], channel: str) -> None:
        self._connection = connection
        self._channel = channel

    async def say(self, payload: str) -> None:
        """Notify on the channel, like a process that is not ours."""
        await self._connection.execute("SELECT pg_notify(%s, %s)", [self._channel, payload])

    async def heard(self) -> list[str]:
        """Every payload since the last call; whatever was committed before this call is in it."""
        mark = json.dumps({"kind": f"test.mark.{uuid4()}"})
        await self.say(mark)
        payloads = []
        async for notification in self._connection.notifies():
            if notification.payload == mark:
                break
            payloads.append(notification.payload)
        return payloads


@asynccontextmanager
async def ear(database_url: str, channel: str = "ephemeral") -> AsyncIterator[Ear]:
    """Listen for as long as the block runs."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(SQL("LISTEN {}").format(Identifier(channel)))
        yield Ear(connection, channel)
