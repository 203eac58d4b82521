"""The audit chain: whoever changes or removes a row is seen."""

import asyncio
from uuid import UUID

import psycopg
import pytest

from bothy_server.kernel.unit import AuditEntry
from bothy_server.platform.audit import verify_chain
from bothy_server.platform.unit_of_work import SqlUnitOfWork

HOST = UUID(int=7)


class Silent:
    def payloads(self, _):
        return []

    def committed(self, _):
        pass


@pytest.fixture
def uow(database):
    return SqlUnitOfWork(database, {}, Silent())


async def write(uow, *codes):
    async with uow() as unit:
        for code in codes:
            unit.audit(AuditEntry("host.state", code, host_id=HOST))


def tamper(database_url, statement):
    """What only the owner of the tables can do."""
    with psycopg.connect(database_url) as connection:
        connection.execute("ALTER TABLE audit_log DISABLE TRIGGER audit_log_only_grows")
        connection.execute(statement)
        connection.execute("ALTER TABLE audit_log ENABLE TRIGGER audit_log_only_grows")


async def test_the_empty_log_is_whole(database):
    report = await verify_chain(database, batch=2)
    assert (report.rows, report.head, report.broken_at) == (0, b"", None)


async def test_rows_of_several_units_form_one_chain(database, uow):
    await write(uow, "one", "two", "three")
    await asyncio.gather(*(write(uow, "four", "five") for _ in range(8)))
    report = await verify_chain(database, batch=4)
    assert (report.rows, report.broken_at) == (19, None)
    assert len(report.head) == 32


@pytest.mark.parametrize(
    ("statement", "broken_at"),
    [
        ("UPDATE audit_log SET code = 'other' WHERE position = 2", 2),
        ("UPDATE audit_log SET at = at + interval '1 microsecond' WHERE position = 3", 3),
        ("UPDATE audit_log SET host_id = NULL, session_id = host_id WHERE position = 1", 1),
        ("DELETE FROM audit_log WHERE position = 2", 3),
        ("DELETE FROM audit_log WHERE position = 1", 2),
        (
            "DELETE FROM audit_log WHERE position = 2; UPDATE audit_log SET position = position - 1 WHERE position > 2",
            2,
        ),
    ],
)
async def test_a_changed_or_removed_row_shows(database, uow, database_url, statement, broken_at):
    await write(uow, "one", "two", "three", "four")
    tamper(database_url, statement)
    assert (await verify_chain(database, batch=10)).broken_at == broken_at


async def test_a_log_cut_at_its_end_differs_from_a_report_kept_elsewhere(database, uow, database_url):
    await write(uow, "one", "two")
    kept = await verify_chain(database, batch=10)
    tamper(database_url, "DELETE FROM audit_log WHERE position = 2")
    now = await verify_chain(database, batch=10)
    assert now.broken_at is None
    assert (now.rows, now.head) != (kept.rows, kept.head)


@pytest.mark.parametrize(
    "statement", ["UPDATE audit_log SET code = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log"]
)
async def test_the_log_only_grows(uow, database_url, statement):
    await write(uow, "one")
    with psycopg.connect(database_url) as connection, pytest.raises(psycopg.errors.RaiseException, match="only grows"):
        connection.execute(statement)


@pytest.mark.parametrize("code", ["", "a b", "line\nfeed", "Some Name", "x" * 65])
def test_a_code_is_a_word_and_never_content(database_url, code):
    with psycopg.connect(database_url) as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(
            "SELECT bothy_append(jsonb_build_array(jsonb_build_object('action', 'host.state', 'code', %s::text)), '[]', '[]')",
            [code],
        )
