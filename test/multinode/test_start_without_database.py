"""A process that starts before its database waits for it, and says so (``docs/spec/cluster.md``, N1)."""

import socket
from pathlib import Path

import psycopg
import pytest

from bothy_kit.postgres import own_server
from bothy_kit.serving import serving
from bothy_kit.sockets import PATIENCE_S
from bothy_server.migrations import run

ROLES = pytest.mark.parametrize("role", ["api", "worker", "all"])


@pytest.fixture(scope="module")
def server():
    """A server that the test may stop and start."""
    with own_server() as server:
        yield server


@pytest.fixture
def migrated(server):
    name = server.postgres.create_database()
    run.upgrade(server.postgres.url(name))
    yield server.postgres.url(name)
    server.postgres.drop_database(name)


@pytest.fixture
def stopped(server, migrated):
    """The address of a database whose server does not run."""
    server.stop()
    yield migrated
    server.stop()  # where the test started it
    server.start()
    server.wait()


@ROLES
def test_it_waits_in_sight_and_goes_on_by_itself(server, stopped, tmp_path, role):
    with serving(stopped, tmp_path, role, BOTHY_CLUSTER__MODE="multi") as process:
        told = process.said("waiting for the database")
        assert told["level"] == "warning"
        assert "failed" in told["reason"]
        waits = process.get("/readyz")
        assert (waits.status_code, waits.json()["status"]) == (503, "starting")
        assert waits.json()["checks"]["database"] == "away"
        assert process.get("/livez").status_code == 200
        assert not process.takes_clients()
        server.start()
        server.wait()
        process.said("the database answers")
        process.said("ready")
        assert process.get("/readyz").status_code == 200
        assert process.takes_clients() == (role != "worker")


@ROLES
def test_told_to_stop_while_it_waits_it_ends_well_at_once(stopped, tmp_path, role):
    with serving(stopped, tmp_path, role, BOTHY_DATABASE__LISTEN_RECONNECT_BACKOFF_CAP="10 min") as process:
        process.said("waiting for the database")
        process.process.terminate()
        process.said("leaving")
        assert (process.rest(), process.process.wait(PATIENCE_S)) == ([], 0)


def test_told_to_stop_while_it_dials_a_host_that_is_silent_it_ends_well_at_once(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE_S)
        url = f"postgresql://bothy@127.0.0.1:{silent.getsockname()[1]}/bothy"
        with serving(url, tmp_path, "all", BOTHY_DATABASE__CONNECT_TIMEOUT="10 min") as process:
            dialled, _ = silent.accept()
            with dialled:
                assert process.get("/readyz").status_code == 503
                process.process.terminate()
                process.said("leaving")
                assert (process.rest(), process.process.wait(PATIENCE_S)) == ([], 0)


@pytest.fixture
def guarded(server, migrated):
    """The address of a role that needs a password, without one."""
    with psycopg.connect(migrated, autocommit=True) as admin:
        admin.execute("CREATE ROLE bothy_guest LOGIN PASSWORD 'right'")
        ((hba,),) = admin.execute("SHOW hba_file").fetchall()
        rules = Path(hba)
        before = rules.read_text()
        rules.write_text(f"local all bothy_guest scram-sha-256\n{before}")
        admin.execute("SELECT pg_reload_conf()")
        try:
            yield migrated.replace("://bothy@", "://bothy_guest{}@")
        finally:
            rules.write_text(before)
            admin.execute("SELECT pg_reload_conf()")
            admin.execute("DROP ROLE bothy_guest")


@ROLES
@pytest.mark.parametrize(
    ("password", "why"),
    [(":wrong", 'password authentication failed for user "bothy_guest"'), ("", "no password supplied")],
)
def test_a_wrong_password_ends_the_start(guarded, tmp_path, role, password, why):
    with serving(guarded.format(password), tmp_path, role) as process:
        (line,) = process.rest()
        assert line.startswith("bothy-server: the database refuses: ")
        assert why in line
        assert line.endswith("check database.url and database.password_file\n")
        assert process.process.wait(PATIENCE_S) == 1


@ROLES
def test_a_database_that_is_not_ours_or_not_there_ends_the_start(server, tmp_path, role):
    name = server.postgres.create_database()
    try:
        with serving(server.postgres.url(name), tmp_path, role) as process:
            (line,) = process.rest()
            assert line.startswith("bothy-server: the database lacks migrations 0001, ")
            assert process.process.wait(PATIENCE_S) == 1
    finally:
        server.postgres.drop_database(name)
    with serving(server.postgres.url(name), tmp_path, role) as process:
        (line,) = process.rest()
        assert line.endswith(f'database "{name}" does not exist; create it, then run `bothy-server migrate`\n')
        assert process.process.wait(PATIENCE_S) == 1
