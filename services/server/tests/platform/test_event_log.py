"""The tail of the event log: nothing skipped, every new connection a gap, pruning said before it happens."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import scalar_row

from bothy_kit.manual_clock import ManualClock
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.database import Database
from bothy_server.platform.event_log import EventLogTail, TailLimits, prune
from bothy_server.platform.settings import Database as DatabaseSettings

LIMITS = TailLimits(poll_interval=60, reconnect_backoff_cap=8, read_timeout=5, batch=3)
DAY = 86400


class Notebook:
    """Writes down what it hears, in order: "gap" or the number of a host."""

    def __init__(self) -> None:
        self.heard: list[str | int] = []
        self.failing = False
        self._changed = asyncio.Event()

    async def on_events(self, events: Sequence[LoggedEvent]) -> None:
        self._note(*(each.event.host_id.int for each in events))

    async def on_gap(self) -> None:
        if self.failing:
            raise StorageUnavailable
        self._note("gap")

    def _note(self, *notes: str | int) -> None:
        self.heard += notes
        self._changed.set()

    async def until(self, note: str | int, times: int = 1) -> list[str | int]:
        async with asyncio.timeout(20):
            while self.heard.count(note) < times:
                self._changed.clear()
                await self._changed.wait()
        return self.heard


@contextlib.asynccontextmanager
async def following(tail: EventLogTail) -> AsyncIterator[None]:
    task = asyncio.create_task(tail.run())
    await tail.settled()
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


@pytest.fixture
async def tail(database, clock, notebook) -> EventLogTail:
    tail = EventLogTail(database, clock, LIMITS)
    tail.subscribe(notebook)
    return tail


class Writer:
    """Another process that commits events of its own."""

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self.connection = connection

    async def write(self, *numbers: int) -> None:
        events = "[" + ",".join(f'{{"type": "host.updated", "host_id": "{UUID(int=n)}"}}' for n in numbers) + "]"
        await self.connection.execute("SELECT bothy_append('[]', %s, '[]')", [events])

    async def value(self, statement: str) -> int:
        return await (await self.connection.cursor(row_factory=scalar_row).execute(statement)).fetchone()


@pytest.fixture
async def writer(database_url: str) -> AsyncIterator[Writer]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield Writer(connection)


@pytest.fixture
async def slow(database_url: str) -> AsyncIterator[Writer]:
    """A writer whose transaction stays open."""
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        yield Writer(connection)


async def test_a_start_is_a_gap_and_later_events_come_in_order_over_several_batches(tail, notebook, writer):
    await writer.write(1, 2)
    async with following(tail):
        await writer.write(*range(3, 11))
        assert await notebook.until(10) == ["gap", *range(3, 11)]
        assert tail.position == 10


async def test_a_position_drawn_early_and_committed_late_holds_back_all_later_ones(tail, notebook, writer, slow):
    """Without the lock the reader would move past the open position and never see it."""
    async with following(tail):
        await slow.write(1)
        overtaking = asyncio.create_task(writer.write(2))
        await _until_one_waits_for_the_lock(slow)
        assert notebook.heard == ["gap"]
        await slow.connection.commit()
        await overtaking
        assert await notebook.until(2) == ["gap", 1, 2]


async def test_a_rolled_back_unit_leaves_a_hole_that_nobody_waits_for(tail, notebook, writer, slow):
    async with following(tail):
        await slow.write(1)
        await slow.connection.rollback()
        await writer.write(2)
        assert await notebook.until(2) == ["gap", 2]


async def test_many_interleaved_writers_lose_nothing(tail, notebook, database_url):
    async def work(first: int) -> None:
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            for number in range(first, first + 20):
                await Writer(connection).write(number)
                await connection.execute("SELECT pg_sleep(random() / 500)")
                await connection.commit()

    async with following(tail):
        await asyncio.gather(*(work(first) for first in (100, 200, 300, 400)))
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            await Writer(connection).write(999)
        heard = (await notebook.until(999))[1:-1]
    assert sorted(heard) == sorted(n for first in (100, 200, 300, 400) for n in range(first, first + 20))


async def test_the_slow_poll_finds_what_no_notification_told(database, notebook, writer, clock):
    tail = EventLogTail(database, clock, TailLimits(0.05, 8, 5, 3))
    tail.subscribe(notebook)
    async with following(tail):
        await writer.connection.execute(
            "INSERT INTO event_log (type, host_id) VALUES ('host.updated', %s)", [UUID(int=5)]
        )
        assert await notebook.until(5) == ["gap", 5]


async def test_a_lost_connection_is_a_gap_at_once_and_events_go_on(tail, notebook, writer, caplog):
    caplog.set_level("INFO", "bothy_server.platform.event_log")
    async with following(tail):
        await writer.write(1)
        await notebook.until(1)
        await _cut(writer)
        await notebook.until("gap", times=2)
        await writer.write(2)
        assert await notebook.until(2) == ["gap", 1, "gap", 2]
    assert [record.message for record in caplog.records] == ["event tail lost", "event tail restored"]


async def test_a_subscriber_that_cannot_read_its_rows_gets_the_gap_again_with_growing_waits(tail, notebook, clock):
    notebook.failing = True
    async with following(tail):
        waits = []
        for _ in range(5):
            waits.append(await clock.wait_for_timer())
            clock.advance(waits[-1])
            await asyncio.sleep(0)
        assert waits == [2, 4, 8, 8, 8]
        assert tail.last_current_at is None
        left = await clock.wait_for_timer()
        notebook.failing = False
        clock.advance(left)
        assert await notebook.until("gap") == ["gap"]


async def test_last_current_tells_when_everything_was_delivered(tail, notebook, clock, writer):
    async with following(tail):
        assert tail.last_current_at == 0
        clock.advance(30)
        await writer.write(1)
        await notebook.until(1)
        await asyncio.sleep(0)
        assert tail.last_current_at == 30


async def test_a_head_below_the_own_position_is_a_gap(tail, notebook, writer):
    """The database was restored from a backup under a connection that lived on."""
    async with following(tail):
        await writer.write(1, 2, 3)
        await notebook.until(3)
        await writer.connection.execute("DELETE FROM event_log WHERE position > 1")
        await writer.connection.execute("NOTIFY event_log")
        assert await notebook.until("gap", times=2) == ["gap", 1, 2, 3, "gap"]
        assert tail.position == 1


async def test_a_position_below_the_floor_is_a_gap(tail, notebook, writer, slow):
    async with following(tail):
        await writer.connection.execute("UPDATE event_log_floor SET position = 40")
        await writer.connection.execute("NOTIFY event_log")
        await notebook.until("gap", times=2)
        assert tail.position == 40


async def test_a_standby_is_never_followed(tail, notebook, writer, clock, database_url):
    """A session that is read-only by default stands for a server in recovery; libpq asks for both at once."""
    name = database_url.rpartition("/")[2].partition("?")[0]
    await writer.connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    async with following(tail):
        await clock.wait_for_timer()
        assert notebook.heard == []
        await writer.connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        clock.advance(LIMITS.reconnect_backoff_cap)
        assert await notebook.until("gap") == ["gap"]


async def test_a_database_that_is_away_does_not_keep_a_node_from_starting(clock, notebook):
    database = Database(DatabaseSettings(url="postgresql://127.0.0.1:1/none"))
    tail = EventLogTail(database, clock, LIMITS)
    tail.subscribe(notebook)
    async with following(tail):
        assert tail.last_current_at is None
    await database.close()


async def test_a_subscriber_with_a_fault_ends_the_tail(database, clock):
    class Faulty(Notebook):
        async def on_events(self, events: Sequence[LoggedEvent]) -> None:
            raise ZeroDivisionError

        async def on_gap(self) -> None:
            raise ZeroDivisionError

    tail = EventLogTail(database, clock, LIMITS)
    tail.subscribe(Faulty())
    with pytest.raises(ZeroDivisionError):
        await tail.run()


async def test_pruning_keeps_young_rows_and_moves_the_floor_first(database, writer):
    await writer.write(1, 2, 3, 4)
    await writer.connection.execute("UPDATE event_log SET created_at = now() - interval '8 days' WHERE position <= 3")
    assert await prune(database, 7 * DAY, batch=2) == 2
    assert await writer.value("SELECT position FROM event_log_floor") == 3
    assert await prune(database, 7 * DAY, batch=2) == 1
    assert await prune(database, 7 * DAY, batch=2) == 0
    assert await writer.value("SELECT min(position) FROM event_log") == 4


async def test_the_head_survives_a_log_that_is_pruned_empty(database, tail, notebook, writer):
    await writer.write(1, 2)
    await writer.connection.execute("UPDATE event_log SET created_at = now() - interval '8 days'")
    assert await prune(database, 7 * DAY, batch=10) == 2
    async with following(tail):
        assert tail.position == 2
        await writer.write(3)
        assert await notebook.until(3) == ["gap", 3]


async def _cut(writer: Writer) -> None:
    await writer.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bothy-event-tail'"
        " AND datname = current_database()"
    )


async def _until_one_waits_for_the_lock(writer: Writer) -> None:
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with asyncio.timeout(20):
        while not await writer.value(waiting):
            pass
