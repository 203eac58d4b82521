"""The border to PostgreSQL: the pool, its deadlines, and the one place where the driver's errors stop.

Whatever means "away, too slow or refusing" becomes :class:`~bothy_server.kernel.unit.StorageUnavailable`. All other errors
are faults of our statements and surface as they are.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg.errors import CancellationTimeout, IdleInTransactionSessionTimeout, ReadOnlySqlTransaction
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.migrations.run import SchemaNewerError, pending
from bothy_server.platform.settings import Database as DatabaseSettings

APPLICATION = "bothy-server"
_ENDS = "the process ends"
_UNAVAILABLE = (psycopg.OperationalError, ReadOnlySqlTransaction, IdleInTransactionSessionTimeout)
"""Connection lost or refused, shut down, out of resources, timeouts, deadlock, serialization, a standby."""

# libpq tells why a server that answers takes no connection by the message only. One in another language counts as away.
_NO_DATABASE = re.compile(r'database ".*" does not exist')
_REFUSED = re.compile(
    r'role ".*" does not exist|authentication failed|no password supplied|no pg_hba\.conf entry'
    r"|permission denied for database|not permitted to log in|does not support SSL|certificate verify failed"
)


class SchemaError(Exception):
    """The database is not fit for this program, or does not let it in; the message says what to do."""


class _Connection(psycopg.AsyncConnection[Any]):
    """A statement whose task is cancelled is cancelled at the server; where none answers, the connection goes with it."""

    cancel_timeout: float

    async def cancel_safe(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - psycopg's signature
        """See psycopg, which calls it for such a task, and would wait ten seconds."""
        try:
            await super().cancel_safe(timeout=min(timeout, self.cancel_timeout))
        except CancellationTimeout:
            _sever(self)


class Database:
    """The connections of one process."""

    def __init__(self, settings: DatabaseSettings) -> None:
        """Nothing is dialled before it is needed."""
        self._settings = settings
        self._engine = create_async_engine(
            "postgresql+psycopg://",
            async_creator=lambda: self._dial(settings.dialled.get_secret_value(), APPLICATION),
            pool_size=settings.pool_size,
            max_overflow=0,
            pool_timeout=settings.pool_timeout,
            use_native_hstore=False,
            hide_parameters=True,  # a failed statement is logged without its values
        )
        self._open: WeakSet[_Connection] = WeakSet()
        self._dials: set[asyncio.Timeout] = set()
        self._given_up = False
        self._end: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """A pooled connection, for one transaction. What the block does not commit is rolled back.

        The block ends within ``database.transaction_timeout``, also when the server hangs; it never waits for anything but
        the database. Raises :class:`StorageUnavailable`.
        """
        with storage_errors():
            async with self._engine.connect() as connection:
                driver = (await connection.get_raw_connection()).driver_connection
                assert isinstance(driver, psycopg.AsyncConnection)
                with severed_after(driver, self._settings.transaction_timeout):
                    try:
                        yield connection
                    finally:
                        await connection.rollback()  # here, not in the pool, so that the deadline covers it

    async def dial_listener(self, application: str) -> psycopg.AsyncConnection[Any]:
        """An own connection in autocommit, to the server itself. Raises :class:`StorageUnavailable`."""
        with storage_errors():
            return await self._dial(self._settings.listen.get_secret_value(), application, autocommit=True)

    async def check_schema(self) -> None:
        """See that this program can work here.

        Raises :class:`SchemaError` for a database that is missing, refuses, is behind or ahead, and
        :class:`StorageUnavailable` for one that is away, which time may mend.
        """
        try:
            async with self.connect() as connection:
                missing = await connection.run_sync(pending)
        except SchemaNewerError as error:
            raise SchemaError(str(error)) from error
        except StorageUnavailable as error:
            if _NO_DATABASE.search(str(error)):
                raise SchemaError(f"{error}; create it, then run `bothy-server migrate`") from error
            if _REFUSED.search(str(error)):
                raise SchemaError(
                    f"the database refuses: {error}; check database.url and database.password_file"
                ) from error
            raise
        if missing:
            raise SchemaError(f"the database lacks migrations {', '.join(missing)}: run `bothy-server migrate`")

    @asynccontextmanager
    async def bounded_end(self) -> AsyncIterator[None]:
        """Entered as the last part of a process and left as the first: what its end asks has ``database.stop_timeout`` in all.

        Then every connection is severed and none is dialled any more: what waits for the database fails at once.
        """
        yield
        self._end = asyncio.get_running_loop().call_later(self._settings.stop_timeout, self._give_up)

    async def close(self) -> None:
        """Close every connection."""
        if self._end is not None:
            self._end.cancel()
        await self._engine.dispose()
        for connection in list(self._open):  # of tasks that were cancelled: the pool forgets those
            await connection.close()

    def _give_up(self) -> None:
        self._given_up = True
        for dial in self._dials:
            dial.reschedule(0)
        for connection in self._open:
            _sever(connection)

    async def _dial(self, url: str, application: str, *, autocommit: bool = False) -> psycopg.AsyncConnection[Any]:
        if self._given_up:
            raise psycopg.OperationalError(_ENDS)
        try:
            async with asyncio.timeout(None) as patience:
                self._dials.add(patience)
                try:
                    connection = await self._connect(url, application, autocommit=autocommit)
                finally:
                    self._dials.discard(patience)
        except TimeoutError as error:
            raise psycopg.OperationalError(_ENDS) from error
        connection.cancel_timeout = self._settings.stop_timeout
        self._open.add(connection)
        return connection

    async def _connect(self, url: str, application: str, *, autocommit: bool) -> _Connection:
        settings = self._settings
        idle_s = max(1, math.ceil(settings.tcp_timeout / 3))
        return await _Connection.connect(
            url,
            autocommit=autocommit,
            application_name=application,
            target_session_attrs="read-write",
            connect_timeout=math.ceil(settings.connect_timeout),
            keepalives_idle=idle_s,
            keepalives_interval=idle_s,
            keepalives_count=2,
            tcp_user_timeout=_milliseconds(settings.tcp_timeout),
            options=" ".join(
                f"-c {name}={value}"
                for name, value in (
                    ("statement_timeout", _milliseconds(settings.statement_timeout)),
                    ("lock_timeout", _milliseconds(settings.lock_timeout)),
                    (
                        "idle_in_transaction_session_timeout",
                        _milliseconds(settings.idle_in_transaction_timeout),
                    ),
                    # bothy_append reads behind its lock; a snapshot of the whole transaction would be older.
                    ("default_transaction_isolation", "read\\ committed"),
                )
            ),
        )


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turn the driver's "unavailable" errors into :class:`StorageUnavailable`; the message never holds a statement."""
    try:
        yield
    except PoolTimeoutError as error:
        raise StorageUnavailable("no free connection to the database") from error
    except DBAPIError as error:
        if isinstance(error.orig, _UNAVAILABLE):
            raise StorageUnavailable(_describe(error.orig)) from error
        raise
    except _UNAVAILABLE as error:
        raise StorageUnavailable(_describe(error)) from error


@contextmanager
def severed_after(connection: psycopg.AsyncConnection[Any], seconds: float) -> Iterator[None]:
    """Shut the connection's socket down when the block takes longer; the driver then reports a lost connection.

    Cancelling the task instead would let the driver wait ten seconds more for a server that hangs.
    """
    timer = asyncio.get_running_loop().call_later(seconds, _sever, connection)
    try:
        yield
    finally:
        timer.cancel()


def _sever(connection: psycopg.AsyncConnection[Any]) -> None:
    if connection.closed:
        return
    with socket.socket(fileno=os.dup(connection.fileno())) as link, suppress(OSError):  # the peer was faster
        link.shutdown(socket.SHUT_RDWR)


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))  # 0 would mean no limit


def _describe(error: Exception) -> str:
    state = getattr(error, "sqlstate", None)
    if state:
        return f"{type(error).__name__} {state}"
    told = " ".join(line for line in str(error).splitlines() if not line.startswith("\t"))  # libpq's advice is indented
    return told or type(error).__name__
