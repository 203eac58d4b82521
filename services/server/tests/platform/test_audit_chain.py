"""The audit chain: whoever changes, removes or puts in a row is seen."""

import asyncio
import gc
import tracemalloc
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest
from alembic import command
from sqlalchemy import create_engine

from bothy_kit.postgres import Postgres
from bothy_kit.recorded import RecordedSignals
from bothy_server.kernel.unit import AuditEntry
from bothy_server.migrations import run
from bothy_server.platform.audit_chain import AuditLog, AuditRow, Chain
from bothy_server.platform.database import Database
from bothy_server.platform.settings import Database as DatabaseSettings
from bothy_server.platform.unit_of_work import SqlUnitOfWork

HOST, ALEX, LAPTOP = UUID(int=7), UUID(int=8), UUID(int=9)
PAIRED, RENAMED = ("host.pair", "paired"), ("host.rename", "renamed")


@pytest.fixture
def uow(database):
    return SqlUnitOfWork(database, {}, RecordedSignals())


@pytest.fixture
def log(database):
    return AuditLog(database, batch=4)


async def write(uow, count):
    """Rows of every shape: of nobody, of somebody, about a person, about a device."""
    shapes = (
        AuditEntry(*PAIRED, host_id=HOST),
        AuditEntry("device.revoke", "revoked", person_id=ALEX, device_id=LAPTOP, subject_device_id=LAPTOP),
        AuditEntry("person.state", "disabled", subject_person_id=ALEX),
        AuditEntry(*RENAMED, person_id=ALEX, host_id=HOST),
    )
    async with uow() as unit:
        for number in range(count):
            unit.audit(shapes[number % len(shapes)])


async def verify(log, kept_rows=0):
    return await log.verify(lambda _: None, kept_rows)


def tamper(database_url, statement):
    """What only the owner of the tables can do."""
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE audit_log DISABLE TRIGGER audit_log_only_grows")
        connection.execute(statement)
        connection.execute("ALTER TABLE audit_log ENABLE TRIGGER audit_log_only_grows")


async def test_the_empty_log_is_whole(log):
    report = await verify(log)
    assert (report.rows, report.head, report.broken_at, report.kept_head) == (0, b"", None, b"")
    assert [row async for row in log.rows()] == []


async def test_rows_of_several_units_form_one_chain(log, uow):
    await write(uow, 3)
    await asyncio.gather(*(write(uow, 2) for _ in range(8)))
    heard = []
    report = await log.verify(heard.append)
    assert (report.rows, report.broken_at) == (19, None)
    assert heard == list(range(1, 20))
    assert report.head == await log.hash_at(19)
    assert len(report.head) == 32


async def test_two_nodes_that_write_at_once_keep_one_chain(log, uow, database_settings):
    other = Database(database_settings)
    theirs = SqlUnitOfWork(other, {}, RecordedSignals())
    await asyncio.gather(*(write(each, 3) for each in (uow, theirs) * 10))
    await other.close()
    report = await verify(log)
    assert (report.rows, report.broken_at) == (60, None)


PUT_IN = """
    UPDATE audit_log SET position = -position - 1 WHERE position > {after};
    UPDATE audit_log SET position = -position WHERE position < 0;
    INSERT INTO audit_log SELECT {position}, at, action, code, person_id, device_id, host_id, session_id, hash
        FROM audit_log ORDER BY position LIMIT 1
"""


@pytest.mark.parametrize(
    ("statement", "broken_at"),
    [
        ("UPDATE audit_log SET code = 'other' WHERE position = 2", 2),
        ("UPDATE audit_log SET action = 'host.owner' WHERE position = 4", 4),
        ("UPDATE audit_log SET at = at + interval '1 microsecond' WHERE position = 3", 3),
        ("UPDATE audit_log SET host_id = NULL, session_id = host_id WHERE position = 1", 1),
        ("UPDATE audit_log SET subject_device_id = NULL WHERE position = 2", 2),
        ("UPDATE audit_log SET subject_device_id = subject_person_id, subject_person_id = NULL WHERE position = 3", 3),
        (f"UPDATE audit_log SET subject_person_id = '{ALEX}' WHERE position = 1", 1),
        ("DELETE FROM audit_log WHERE position = 2", 3),
        ("DELETE FROM audit_log WHERE position = 1", 2),
        (
            "DELETE FROM audit_log WHERE position = 2; UPDATE audit_log SET position = position - 1 WHERE position > 2",
            2,
        ),
        (PUT_IN.format(after=2, position=3), 3),
        (PUT_IN.format(after=0, position=1), 2),
        (PUT_IN.format(after=9, position=0), 0),
        (PUT_IN.format(after=9, position=7), 7),
    ],
)
async def test_a_changed_removed_or_inserted_row_shows(log, uow, database_url, statement, broken_at):
    await write(uow, 6)
    tamper(database_url, statement)
    report = await verify(log)
    assert report.broken_at == broken_at
    assert report.rows <= broken_at


async def test_a_log_cut_at_its_end_lacks_the_row_of_a_report_kept_elsewhere(log, uow, database_url):
    await write(uow, 3)
    kept = await verify(log)
    assert (await verify(log, kept.rows)).kept_head == kept.head
    await write(uow, 2)
    assert (await verify(log, kept.rows)).kept_head == kept.head
    tamper(database_url, "DELETE FROM audit_log WHERE position > 2")
    now = await verify(log, kept.rows)
    assert (now.rows, now.broken_at, now.kept_head) == (2, None, None)


async def test_a_log_that_was_computed_anew_has_another_hash_than_the_one_kept(log, uow, database_url):
    await write(uow, 3)
    kept = await verify(log)
    tamper(database_url, "DELETE FROM audit_log WHERE position > 1")
    await write(uow, 3)
    now = await verify(log, kept.rows)
    assert (now.rows, now.broken_at) == (4, None)
    assert now.kept_head not in (kept.head, None)


async def test_rows_that_come_while_the_log_is_read_are_left_for_another_time(log, uow):
    await write(uow, 5)
    positions = []
    async for row in log.rows(after=2):
        positions.append(row.position)
        await write(uow, 1)
    assert positions == [3, 4, 5]
    assert await log.head() == 8
    assert await log.hash_at(0) == b""
    assert await log.hash_at(9) is None


@pytest.mark.parametrize(
    "statement", ["UPDATE audit_log SET code = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log"]
)
async def test_the_log_only_grows(uow, database_url, statement):
    await write(uow, 1)
    with psycopg.connect(database_url) as connection, pytest.raises(psycopg.errors.RaiseException, match="only grows"):
        connection.execute(statement)


@pytest.mark.parametrize("code", ["", "a b", "line\nfeed", "Some Name", "x" * 65])
def test_a_code_is_a_word_and_never_content(database_url, code):
    with psycopg.connect(database_url) as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(
            "SELECT bothy_append(jsonb_build_array(jsonb_build_object('action', 'host.state', 'code', %s::text)), '[]', '[]')",
            [code],
        )


# ---- a chain that began before rows had a subject ------------------------------------------------------------------

_OLD = """
    SELECT bothy_append(jsonb_agg(jsonb_build_object('action', 'host.state', 'code', 'active', 'host_id', %s::text,
        'person_id', CASE WHEN n % 2 = 0 THEN %s::text END)), '[]', '[]') FROM generate_series(1, 5) n
"""


def upgrade_to(url, revision):
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with engine.begin() as connection:
        config = run._config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


async def test_rows_from_before_the_subject_columns_still_verify(postgres: Postgres):
    name = postgres.create_database()
    url = postgres.url(name)
    upgrade_to(url, "0004")
    with psycopg.connect(url) as connection:
        connection.execute(_OLD.replace("n % 2", "n %% 2"), [str(HOST), str(ALEX)])
    assert run.upgrade(url)[0] == "0005"
    database = Database(DatabaseSettings(url=url))
    await write(SqlUnitOfWork(database, {}, RecordedSignals()), 4)
    report = await verify(AuditLog(database, batch=3))
    await database.close()
    postgres.drop_database(name)
    assert (report.rows, report.broken_at) == (9, None)


# ---- a long log ----------------------------------------------------------------------------------------------------

_LONG = """
    SELECT bothy_append(jsonb_agg(jsonb_build_object('action', 'host.pair', 'code', 'paired', 'host_id', %s::text)),
        '[]', '[]') FROM generate_series(1, 5000)
"""
LONG = 4


async def test_a_long_log_is_read_in_bounded_memory(database, database_url):
    """20,000 rows; of one batch with all its values not three megabytes are alive at any time."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for _ in range(LONG):
            connection.execute(_LONG, [str(HOST)])
    log, peaks = AuditLog(database, batch=1000), []

    def progress(rows):
        if rows == 5000:  # what is allocated once is there
            gc.collect()
            tracemalloc.start(1)
        if rows > 5000 and rows % 5000 == 0:
            peaks.append(tracemalloc.get_traced_memory()[1])

    report = await log.verify(progress)
    tracemalloc.stop()
    assert (report.rows, report.broken_at) == (5000 * LONG, None)
    assert peaks[-1] < 3 << 20, peaks


def test_a_row_that_follows_moves_the_chain_and_another_leaves_it():
    at = datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    nothing = (None, None, None, None)
    row = AuditRow(1, at, *PAIRED, *nothing, b"", None, None)
    good = AuditRow(1, at, *PAIRED, *nothing, row.expected_hash(b""), None, None)
    chain = Chain()
    assert not chain.follows(row)
    assert (chain.rows, chain.head) == (0, b"")
    assert chain.follows(good)
    assert (chain.rows, chain.head) == (1, good.hash)
    assert not chain.follows(good)
