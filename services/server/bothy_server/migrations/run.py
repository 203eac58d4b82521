"""Bringing a database to the schema of this program, and asking how far it is.

Migrations run forward only, on a live system. One process migrates at a time; others wait and then find nothing to do.
"""

from __future__ import annotations

import math
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, NullPool, create_engine, text

_LOCK = int.from_bytes(b"bothymig")
"""Advisory lock held by the connection that migrates; a process that is killed leaves none behind."""


class SchemaNewerError(Exception):
    """The database was migrated by a newer release of the program."""


def upgrade(url: str, connect_timeout: float = 5) -> list[str]:
    """Apply what is missing in one transaction; the revisions applied, oldest first.

    Blocks, also while another process migrates. ``url`` must lead to PostgreSQL itself, not to a transaction pooler;
    ``connect_timeout`` in seconds. Raises :class:`SchemaNewerError`, having changed nothing, and SQLAlchemy's errors.
    """
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(url, connect_timeout=math.ceil(connect_timeout)),
        poolclass=NullPool,
    )
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
        connection.commit()
        missing = pending(connection)
        connection.rollback()
        if missing:
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
        return missing


def pending(connection: Connection) -> list[str]:
    """The revisions that this database lacks, oldest first. Raises :class:`SchemaNewerError`."""
    known = [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()][::-1]
    current = MigrationContext.configure(connection).get_current_revision()
    if current is None:
        return known
    if current not in known:
        raise SchemaNewerError(
            f"the database has schema {current}, this program knows schemas up to {known[-1]}: start a newer release"
        )
    return known[known.index(current) + 1 :]


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
