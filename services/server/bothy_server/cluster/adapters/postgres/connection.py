"""The connection that LISTENs, read by hand.

psycopg waits for an answer and, when cancelled in the middle, asks the server to cancel and waits again: up to ten seconds
on a link that is stalled. Here libpq is only fed when its socket is readable, so that ending never waits. The connection
is in autocommit and runs nothing but LISTEN: it is never inside a transaction, which would hold back everybody's queue.
"""

from __future__ import annotations

import asyncio
from typing import Any, Self

import psycopg
from psycopg.pq import ExecStatus

from bothy_server.platform.database import Database

APPLICATION_NAME = "bothy-terminal-ephemeral"


class ListeningConnection:
    """One connection to PostgreSQL. Every method may raise :class:`psycopg.Error`; then the connection is gone."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._readable = asyncio.Event()
        self._socket = self._pgconn.socket
        asyncio.get_running_loop().add_reader(self._socket, self._readable.set)

    @classmethod
    async def open(cls, database: Database) -> Self:
        """Dial. Raises :class:`~bothy_server.kernel.unit.StorageUnavailable`."""
        return cls(await database.dial_listener(APPLICATION_NAME))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        await self._connection.close()

    async def listen(self, channel: str) -> None:
        """Begin to hear ``channel``; whatever is committed after the return will be heard."""
        self._pgconn.send_query(f'LISTEN "{channel}"'.encode())
        while self._pgconn.is_busy():
            await self._read()
        while (result := self._pgconn.get_result()) is not None:
            if result.status != ExecStatus.COMMAND_OK:
                raise psycopg.OperationalError(result.get_error_message())

    async def payloads(self) -> list[str]:
        """The payloads that came since the last call; waits for at least one."""
        while not (payloads := self._take()):
            await self._read()
        return payloads

    def _take(self) -> list[str]:
        notifications = iter(self._pgconn.notifies, None)
        return [notification.extra.decode(errors="replace") for notification in notifications]

    async def _read(self) -> None:
        await self._readable.wait()
        self._readable.clear()
        self._pgconn.consume_input()
