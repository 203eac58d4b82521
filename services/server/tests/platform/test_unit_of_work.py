"""One transaction for one use case, and what it tells the world after its commit, on a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Event, Signal, StorageUnavailable
from bothy_server.platform.database import Database
from bothy_server.platform.settings import Database as DatabaseSettings
from bothy_server.platform.unit_of_work import SqlUnitOfWork

HOST = UUID("01980000-0000-7000-8000-000000000001")


@dataclass(frozen=True, slots=True)
class Knock(Signal):
    kind: ClassVar[str] = "test.knock"
    number: int = 0


class RecordingTransport:
    """Notifies the number of each signal and remembers what it was told is committed."""

    def __init__(self) -> None:
        self.sent: list[Signal] = []

    def payloads(self, signals: Sequence[Signal]) -> list[str]:
        return [str(signal.number) for signal in signals if isinstance(signal, Knock)]

    def committed(self, signals: Sequence[Signal]) -> None:
        self.sent.extend(signals)


class PersonNames:
    """A store as a feature would write it."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, number: int) -> None:
        values = {"id": UUID(int=number), "name": f"person-{number}"}
        await self._connection.execute(text("INSERT INTO persons (id, name) VALUES (:id, :name)"), values)


@pytest.fixture
def transport() -> RecordingTransport:
    return RecordingTransport()


@pytest.fixture
async def uow(database: Database, transport: RecordingTransport) -> SqlUnitOfWork:
    return SqlUnitOfWork(database, {PersonNames: PersonNames}, transport)


@pytest.fixture
async def watcher(database_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """Another process: sees what is committed and hears what is notified."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("LISTEN event_log")
        await connection.execute("LISTEN ephemeral")
        yield connection


async def count(watcher: psycopg.AsyncConnection, table: str) -> int:
    cursor = await watcher.execute(f"SELECT count(*) FROM {table}")
    (number,) = await cursor.fetchone() or (None,)
    return number


async def heard(watcher: psycopg.AsyncConnection) -> list[tuple[str, str]]:
    """All notifications until now: a marker of our own comes behind them."""
    await watcher.execute("SELECT pg_notify('ephemeral', 'marker')")
    found = []
    async for each in watcher.notifies(timeout=10):
        if each.payload == "marker":
            break
        found.append((each.channel, each.payload))
    return found


async def test_everything_collected_is_written_and_sent_with_the_commit(uow, transport, watcher):
    async with uow() as unit:
        await unit.of(PersonNames).add(1)
        unit.emit(Event("host.updated", host_id=HOST))
        unit.emit(Event("rights.changed", host_id=HOST))
        unit.audit(AuditEntry("host.state", "disabled", host_id=HOST))
        unit.stage(Knock(7))
        assert transport.sent == []
        assert await heard(watcher) == []
        assert await count(watcher, "persons") == 0

    assert await heard(watcher) == [("event_log", "2"), ("ephemeral", "7")]
    assert transport.sent == [Knock(7)]
    assert [await count(watcher, table) for table in ("persons", "event_log", "audit_log")] == [1, 2, 1]


async def test_an_exception_rolls_back_and_sends_nothing(uow, transport, watcher):
    async def refused() -> None:
        async with uow() as unit:
            await unit.of(PersonNames).add(1)
            unit.emit(Event("host.updated", host_id=HOST))
            unit.audit(AuditEntry("host.state", "disabled", host_id=HOST))
            unit.stage(Knock(7))
            raise Problem(409, "host_not_active", "The host is not active.")

    with pytest.raises(Problem):
        await refused()

    assert await heard(watcher) == []
    assert transport.sent == []
    assert [await count(watcher, table) for table in ("persons", "event_log", "audit_log")] == [0, 0, 0]


async def test_a_payload_that_the_database_refuses_undoes_the_unit(uow, transport, watcher):
    transport.payloads = lambda _: ["x" * 8000]

    async def oversized() -> None:
        async with uow() as unit:
            await unit.of(PersonNames).add(1)
            unit.stage(Knock())

    with pytest.raises(DBAPIError, match="payload string too long"):
        await oversized()
    assert transport.sent == []
    assert await count(watcher, "persons") == 0


@pytest.mark.parametrize(("action", "code"), [("host.paint", "green"), ("host.state", "green")])
async def test_an_action_or_a_code_outside_the_closed_list_is_refused(uow, watcher, action, code):
    with pytest.raises(ValueError, match=f"{action} green is not in AUDIT_ACTIONS"):
        async with uow() as unit:
            unit.audit(AuditEntry(action, code))
    assert await count(watcher, "audit_log") == 0


async def test_units_do_not_nest_but_run_side_by_side(uow):
    async with uow():
        with pytest.raises(RuntimeError, match="do not nest"):
            async with uow():
                pass

        async def other() -> None:
            async with uow() as unit:
                await unit.of(PersonNames).add(2)

        await asyncio.create_task(other())
    async with uow():
        pass


async def test_a_task_cancelled_inside_its_unit_leaves_nothing_behind(uow, transport, watcher, database):
    inside = asyncio.Event()

    async def work() -> None:
        async with uow() as unit:
            await unit.of(PersonNames).add(1)
            unit.stage(Knock(1))
            inside.set()
            await unit.connection.execute(text("SELECT pg_sleep(30)"))

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.sent == []
    assert await count(watcher, "persons") == 0


async def test_a_commit_under_way_is_finished_before_a_cancellation_is_seen(uow, transport, watcher):
    """Otherwise rows would be committed whose local signals were never sent."""
    blocker = "SELECT pg_advisory_lock(x'626f7468796c6f67'::bigint)"
    await watcher.execute(blocker)
    collected = asyncio.Event()

    async def work() -> None:
        async with uow() as unit:
            unit.emit(Event("host.updated", host_id=HOST))
            unit.stage(Knock(1))
            collected.set()

    task = asyncio.create_task(work())
    await collected.wait()
    await blocked(watcher)
    task.cancel()
    await watcher.execute("SELECT pg_advisory_unlock(x'626f7468796c6f67'::bigint)")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await count(watcher, "event_log") == 1
    assert transport.sent == [Knock(1)]


async def test_a_database_that_is_cut_is_unavailable_and_comes_back(uow, watcher, transport):
    async def cut() -> None:
        async with uow() as unit:
            unit.stage(Knock(1))
            await unit.of(PersonNames).add(1)
            await watcher.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            await unit.of(PersonNames).add(2)

    with pytest.raises(StorageUnavailable):
        await cut()
    assert transport.sent == []
    async with uow() as unit:
        await unit.of(PersonNames).add(3)
    assert await count(watcher, "persons") == 1


async def test_a_lock_that_does_not_come_free_is_unavailable(database_url, transport, watcher):
    settings = DatabaseSettings(url=database_url, lock_timeout="50ms")
    database = Database(settings)
    uow = SqlUnitOfWork(database, {}, transport)
    await watcher.execute("SELECT pg_advisory_lock(x'626f7468796c6f67'::bigint)")
    try:
        with pytest.raises(StorageUnavailable, match="55P03"):
            async with uow() as unit:
                unit.emit(Event("host.updated"))
    finally:
        await database.close()


async def blocked(watcher: psycopg.AsyncConnection) -> None:
    """Until another connection waits for an advisory lock."""
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with asyncio.timeout(20):
        while await (await watcher.execute(waiting)).fetchone() == (0,):
            pass
