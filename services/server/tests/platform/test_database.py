"""The border to PostgreSQL: deadlines that hold, errors that stop, a schema that fits."""

import asyncio
import contextlib

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from bothy_kit.eventually import eventually
from bothy_kit.postgres import Postgres
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.migrations import run
from bothy_server.platform.database import Database, SchemaError
from bothy_server.platform.settings import Database as DatabaseSettings

IMPATIENT = {"transaction_timeout": "500 ms", "statement_timeout": "500 ms", "lock_timeout": "500 ms"}


class Way:
    """A way to the server that can be stopped up: bytes are taken and go nowhere."""

    def __init__(self, database_url: str) -> None:
        self._target = conninfo_to_dict(database_url)
        self._open = asyncio.Event()
        self._open.set()
        self.url = ""

    def pause(self) -> None:
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as ends:
            ends.push_async_callback(_close, writer)
            await self._open.wait()
            there_reader, there_writer = await self._dial()
            ends.push_async_callback(_close, there_writer)
            await asyncio.gather(self._pass(reader, there_writer), self._pass(there_reader, writer))

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._target["host"]), self._target.get("port", 5432)
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._open.wait()
            writer.write(data)
        writer.close()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def hanging(database_url):
    way = Way(database_url)
    carriers = set()

    def accept(reader, writer):
        carriers.add(asyncio.create_task(way.carry(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    way.url = make_url(database_url).set(host="127.0.0.1", port=port, query={}).render_as_string(hide_password=False)
    async with server:
        yield way
        server.close()
        for carrier in carriers:
            carrier.cancel()
        await asyncio.gather(*carriers, return_exceptions=True)


async def query(database, statement):
    async with database.connect() as connection:
        return (await connection.execute(text(statement))).all()


@pytest.fixture
async def opened(database_url):
    """Databases with other settings, closed afterwards."""
    made = []

    def open_with(**settings) -> Database:
        made.append(Database(DatabaseSettings(**({"url": database_url} | settings))))
        return made[-1]

    yield open_with
    for each in made:
        await each.close()


@pytest.fixture
def empty_url(postgres: Postgres):
    name = postgres.create_database()
    yield postgres.url(name)
    postgres.drop_database(name)


async def test_every_connection_has_its_deadlines_and_a_name(opened):
    database = opened(
        statement_timeout="3 s", lock_timeout="700 ms", idle_in_transaction_timeout="4 s", tcp_timeout="9 s"
    )
    names = [
        "statement_timeout",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
        "application_name",
        "default_transaction_isolation",
    ]
    shown = [(await query(database, f"SHOW {name}"))[0][0] for name in names]
    assert shown == ["3s", "700ms", "4s", "bothy-server", "read committed"]


async def test_the_listener_has_them_too_and_is_never_in_a_transaction(opened):
    connection = await opened(statement_timeout="3 s").dial_listener("bothy-test")
    async with connection:
        cursor = await connection.execute("SHOW statement_timeout")
        assert await cursor.fetchone() == ("3s",)
        assert connection.autocommit
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert connection.info.get_parameters()["application_name"] == "bothy-test"
        assert connection.info.get_parameters()["target_session_attrs"] == "read-write"
        assert connection.info.get_parameters()["tcp_user_timeout"] == "10000"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT pg_sleep(9)",
        "SELECT pg_terminate_backend(pg_backend_pid())",
        "DO $$ BEGIN RAISE serialization_failure; END $$",
        "DO $$ BEGIN RAISE deadlock_detected; END $$",
        "DO $$ BEGIN RAISE read_only_sql_transaction; END $$",
    ],
)
async def test_away_slow_or_refusing_is_unavailable(opened, statement):
    database = opened(statement_timeout="100 ms")
    with pytest.raises(StorageUnavailable):
        await query(database, statement)
    assert await query(database, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("statement", ["SELEKT", "SELECT 1/0", "INSERT INTO event_log_floor (position) VALUES (1)"])
async def test_our_own_faults_surface(opened, statement):
    with pytest.raises(DBAPIError):
        await query(opened(), statement)


async def test_nobody_listening_is_unavailable(opened):
    with pytest.raises(StorageUnavailable):
        await query(opened(url="postgresql://bothy:hush@127.0.0.1:1/none"), "SELECT 1")


async def test_the_message_holds_no_password(opened):
    with pytest.raises(StorageUnavailable) as caught:
        await query(opened(url="postgresql://bothy:hush@127.0.0.1:1/none"), "SELECT 1")
    assert "hush" not in str(caught.value)


async def test_a_full_pool_is_unavailable(opened):
    database = opened(pool_size=1, pool_timeout="50 ms")
    async with database.connect():
        with pytest.raises(StorageUnavailable, match="no free connection"):
            await query(database, "SELECT 1")


async def test_a_server_that_hangs_is_unavailable_when_the_transaction_is_too_old(opened, database_url):
    """Its kernel goes on acknowledging, so no timeout of TCP and none of the server's own would ever fire."""
    async with hanging(database_url) as way:
        database = opened(url=way.url, **IMPATIENT)

        async def hang() -> None:
            async with database.connect() as connection:
                await connection.execute(text("SELECT 1"))
                way.pause()
                await connection.execute(text("SELECT 1"))

        async with asyncio.timeout(5):
            with pytest.raises(StorageUnavailable):
                await hang()
        way.resume()
        assert await query(database, "SELECT 1") == [(1,)]
        await database.close()


async def test_a_rollback_on_a_server_that_hangs_is_bounded_too(opened, database_url):
    async with hanging(database_url) as way:
        database = opened(url=way.url, **IMPATIENT)

        async def hang() -> None:
            async with database.connect() as connection:
                await connection.execute(text("SELECT 1"))
                way.pause()
                raise ZeroDivisionError

        async with asyncio.timeout(5):
            with pytest.raises(StorageUnavailable):
                await hang()
        await database.close()


async def test_a_failed_statement_tells_no_values(database):
    with pytest.raises(DBAPIError) as failed:
        async with database.connect() as connection:
            await connection.execute(text("SELECT CAST(:number AS int) / 0, :secret"), {"number": 1, "secret": "hush"})
    assert "hush" not in str(failed.value)


async def test_a_dial_to_a_server_that_hangs_is_bounded(opened, database_url):
    async with hanging(database_url) as way:
        way.pause()
        async with asyncio.timeout(8):
            with pytest.raises(StorageUnavailable):
                await query(opened(url=way.url, connect_timeout="1 s"), "SELECT 1")


# ---- the end of a process -------------------------------------------------------------------------------------------

LONG = dict.fromkeys(("transaction_timeout", "statement_timeout", "connect_timeout", "lock_timeout"), "5 min")


async def test_what_waits_at_the_end_is_given_up(opened, database_url):
    """A statement and a dial under way fail, and what is asked later fails at once."""
    async with hanging(database_url) as way:
        database = opened(url=way.url, stop_timeout="100 ms", pool_size=2, **LONG)
        assert await query(database, "SELECT 1") == [(1,)]
        way.pause()
        async with database.bounded_end():
            asked = [asyncio.create_task(query(database, "SELECT 1")) for _ in range(2)]  # the second one dials
            asked.append(asyncio.create_task(database.dial_listener("bothy-test")))
            done, _ = await asyncio.wait(asked, timeout=0.2)
            assert done == set()
        async with asyncio.timeout(10):
            answers = await asyncio.gather(*asked, query(database, "SELECT 1"), return_exceptions=True)
        assert [type(answer) for answer in answers] == [StorageUnavailable] * 4
        assert str(answers[-1]) == "the process ends"
        await database.close()


async def test_an_end_that_is_quick_gives_nothing_up(opened):
    database = opened(stop_timeout="50 ms")
    async with database.bounded_end():
        pass
    assert await query(database, "SELECT 1") == [(1,)]
    await database.close()
    await asyncio.sleep(0.1)
    assert await query(database, "SELECT 1") == [(1,)], "the timer went with it"
    await database.close()


async def test_a_statement_that_is_cancelled_waits_no_longer_than_it_may(opened, database_url):
    async with hanging(database_url) as way:
        database = opened(url=way.url, stop_timeout="100 ms", **LONG)
        assert await query(database, "SELECT 1") == [(1,)]
        way.pause()
        asked = asyncio.create_task(query(database, "SELECT 1"))
        await asyncio.wait([asked], timeout=0.2)
        asked.cancel()
        async with asyncio.timeout(8):  # psycopg alone waits five seconds, and five more
            await asyncio.wait([asked])
        assert asked.cancelled()
        await database.close()


async def test_a_statement_that_is_cancelled_ends_at_the_server(opened, database_url):
    database = opened()
    asked = asyncio.create_task(query(database, "SELECT pg_sleep(4), 'sleeper'"))
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(4)%'"

    async def sleeps():
        return await query(database, sleeping) == [(1,)]

    await eventually(sleeps)
    asked.cancel()
    await asyncio.wait([asked])
    assert await query(database, sleeping) == [(0,)]


async def test_a_migrated_database_fits(database):
    await database.check_schema()


async def test_an_empty_database_says_what_to_do(opened, empty_url):
    with pytest.raises(SchemaError, match="bothy-server migrate"):
        await opened(url=empty_url).check_schema()


async def test_a_missing_database_says_what_to_do(opened, postgres):
    with pytest.raises(SchemaError, match=r"does not exist.*create it, then run `bothy-server migrate`"):
        await opened(url=postgres.url("bothy_nowhere")).check_schema()


async def test_a_newer_database_is_refused_with_the_way_out(opened, empty_url):
    run.upgrade(empty_url)
    with psycopg.connect(empty_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaError, match=r"9999.*start a newer release"):
        await opened(url=empty_url).check_schema()
