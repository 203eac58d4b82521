"""Fixtures that every suite shares. Databases are clones of one migrated template, so that no test sees another's rows."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bothy_kit.answers import Answers
from bothy_kit.postgres import Postgres, running_postgres

_answers = Answers()


def pytest_configure(config: pytest.Config) -> None:
    """What a suite is started by (nohup, a shell's background) may ignore signals, and children would inherit that."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "undeclared_refusals: the test makes an operation refuse what it does not declare"
    )
    _answers.listen()


def pytest_sessionfinish() -> None:
    """``BOTHY_TEST_ANSWERS`` names the file for ``tools/answers.py``."""
    if file := os.environ.get("BOTHY_TEST_ANSWERS"):
        _answers.write(Path(file))


@pytest.fixture(autouse=True)
def _declared_refusals(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test fails by a refusal of the REST interface that its operation does not declare."""
    _answers.undeclared.clear()
    yield
    if request.node.get_closest_marker("undeclared_refusals") is None:
        assert _answers.undeclared == []


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real server for the whole run; a run without one fails."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_template(postgres: Postgres) -> Iterator[str]:
    """The name of a database at the newest migration, to clone."""
    from bothy_server.migrations import run

    name = postgres.create_database()
    run.upgrade(postgres.url(name))
    yield name
    postgres.drop_database(name)


@pytest.fixture
def database_url(postgres: Postgres, migrated_template: str) -> Iterator[str]:
    """The address of a fresh database at the newest migration; it goes with the test."""
    name = postgres.create_database(migrated_template)
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture(scope="module")
def shared_database_url(postgres: Postgres, migrated_template: str) -> Iterator[str]:
    """The same for all tests of a module: they give every row a name or id of its own."""
    name = postgres.create_database(migrated_template)
    yield postgres.url(name)
    postgres.drop_database(name)
