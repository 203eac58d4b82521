"""Bringing a database up: once, in order, by one process at a time, all or nothing."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import psycopg
import pytest
from alembic import command
from sqlalchemy import NullPool, create_engine

from bothy_kit.postgres import Postgres
from bothy_server.migrations import run
from bothy_wire.frames import CloseReason, OpenFailure

ALL = ["0001", "0002", "0003", "0004", "0005"]


@pytest.fixture
def empty_url(postgres: Postgres):
    name = postgres.create_database()
    yield postgres.url(name)
    postgres.drop_database(name)


def test_an_empty_database_gets_everything_once(empty_url):
    assert run.upgrade(empty_url) == ALL
    assert run.upgrade(empty_url) == []


@pytest.mark.parametrize("_round", range(3))
def test_nodes_that_race_migrate_once(empty_url, _round):
    """BR-30: Alembic has no lock of its own."""
    with ThreadPoolExecutor(3) as nodes:
        applied = list(nodes.map(run.upgrade, [empty_url] * 3))
    assert sorted(applied) == [[], [], ALL]


def test_a_process_killed_half_way_leaves_nothing_and_no_lock(empty_url):
    """It dies with the tables made and nothing committed."""
    program = (
        "import os, sys\n"
        "from alembic import op\n"
        "from bothy_server.migrations import run\n"
        "done = op.execute\n"
        "def execute(sql):\n"
        "    done(sql)\n"
        "    'bothy_append' in sql and os.kill(os.getpid(), 9)\n"
        "op.execute = execute\n"
        "run.upgrade(sys.argv[1])\n"
    )
    died = subprocess.run([sys.executable, "-c", program, empty_url], check=False)
    assert died.returncode == -9
    with psycopg.connect(empty_url) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert tables == (0,)
    assert run.upgrade(empty_url) == ALL


def up_to(url, revision):
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)
    with engine.connect() as connection:
        config = run._config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()


def test_a_migration_of_a_system_at_work_waits_while_it_holds_nothing(empty_url):
    """An open of an older node has spent its step-up and then needs the row of its device."""
    up_to(empty_url, "0004")
    with psycopg.connect(empty_url) as opening, ThreadPoolExecutor(1) as migrating:
        opening.execute("UPDATE step_ups SET consumed_at = now()")
        applied = migrating.submit(run.upgrade, empty_url)
        with psycopg.connect(empty_url, autocommit=True) as watching:
            while not watching.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND (wait_event = 'PgSleep' OR wait_event_type = 'Lock')"
            ).fetchone()[0]:
                assert not applied.done(), applied.exception()
        opening.execute("SELECT FROM devices")
        opening.execute("SELECT FROM terminal_sessions")
        opening.commit()
        assert applied.result() == ["0005"]


def test_a_newer_database_is_left_alone(empty_url):
    run.upgrade(empty_url)
    with psycopg.connect(empty_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(run.SchemaNewerError, match="9999"):
        run.upgrade(empty_url)


SESSION = (
    'INSERT INTO terminal_sessions (id, host_id, person_id, device_id, profile, "session_user", expires_at, state,'
    " close_reason, close_detail, closed_at) SELECT gen_random_uuid(), hosts.id, persons.id, devices.id, 'shell', 'alex',"
    " now() + interval '1 day', %s, %s, %s, CASE WHEN %s THEN now() END FROM hosts, persons, devices"
)


@pytest.fixture
def furnished(database_url):
    """One host, one person, one device."""
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO persons (id, name) VALUES (gen_random_uuid(), 'Alex')")
        connection.execute("INSERT INTO hosts (id, name) VALUES (gen_random_uuid(), 'lab-1')")
        connection.execute(
            "INSERT INTO devices (id, person_id, name, kind, signing_key, channel_key)"
            " SELECT gen_random_uuid(), id, 'laptop', 'cli', decode(repeat('01', 32), 'hex'), decode(repeat('02', 32), 'hex')"
            " FROM persons"
        )
        yield connection


@pytest.mark.parametrize(
    "end",
    [
        ("opening", None, None, False),
        ("detached", None, None, False),
        ("closed", "idle", None, True),
        ("closed", "open_failed", "open_timeout", True),
    ],
)
def test_sessions_that_make_sense_are_taken(furnished, end):
    furnished.execute(SESSION, end)


@pytest.mark.parametrize(
    "end",
    [
        ("closing", None, None, False),
        ("closed", None, None, True),
        ("closed", "idle", None, False),
        ("active", "idle", None, False),
        ("active", None, None, True),
        ("closed", "tired", None, True),
        ("closed", "idle", "open_timeout", True),
        ("closed", "open_failed", "tired", True),
        ("active", None, "open_timeout", False),
    ],
)
def test_sessions_that_contradict_themselves_are_not(furnished, end):
    with pytest.raises(psycopg.errors.CheckViolation):
        furnished.execute(SESSION, end)


def test_a_retired_host_gives_its_name_free_and_a_living_one_does_not(furnished):
    furnished.execute("UPDATE hosts SET state = 'retired'")
    furnished.execute("INSERT INTO hosts (id, name) VALUES (gen_random_uuid(), 'lab-1')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        furnished.execute("INSERT INTO hosts (id, name) VALUES (gen_random_uuid(), 'lab-1')")


def test_the_tables_are_those_of_the_specification(database_url):
    page = (
        (Path(__file__).parents[4] / "docs" / "spec" / "data.md")
        .read_text()
        .partition("## Tables")[2]
        .partition("### ")[0]
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")][2:]
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "SELECT table_name, string_agg(column_name, ', ' ORDER BY ordinal_position)"
            " FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'"
            " GROUP BY table_name"
        ).fetchall()
    assert dict(rows) == dict(tables)


@pytest.mark.parametrize("reasons", [("close_reason", CloseReason), ("close_detail", OpenFailure)])
def test_the_reasons_are_those_of_the_wire(database_url, reasons):
    column, wire = reasons
    with psycopg.connect(database_url) as connection:
        (check,) = connection.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s",
            [f"terminal_sessions_{column}_check"],
        ).fetchone()
    assert set(re.findall(r"'(\w+)'", check)) == set(get_args(wire))
