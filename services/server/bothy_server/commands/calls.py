"""What every command shares: its settings, its use cases, and errors as lines."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

import click
from sqlalchemy.exc import DBAPIError

from bothy_server import wiring
from bothy_server.identity.adapters.keystore.store import KeyStoreError
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.migrations.run import SchemaNewerError
from bothy_server.platform.database import SchemaError
from bothy_server.platform.lifecycle import ComponentEnded
from bothy_server.platform.load_settings import KeySettings, SettingsError, load_key_settings, load_settings
from bothy_server.platform.serving import ListenError
from bothy_server.platform.settings import Settings

T = TypeVar("T")

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def with_admin(act: Callable[[wiring.Admin], Coroutine[Any, Any, T]]) -> T:
    """Do ``act`` with the use cases that need no node."""
    settings = settings_in_force()

    async def run() -> T:
        async with wiring.admin(settings) as admin:
            return await act(admin)

    return guarded(lambda: asyncio.run(run()))


def settings_in_force() -> Settings:
    """All of them."""
    return guarded(load_settings)


def key_settings_in_force() -> KeySettings:
    """What the keys need: they are made on machines that know no database."""
    return guarded(load_key_settings)


def make_sure(warning: str, question: str) -> None:
    """Ask before what cannot be undone; where nobody can be asked, end and name ``--yes``."""
    if not sys.stdin.isatty():
        fail(f"{warning}; --yes does it")
    click.echo(f"bothy-server: {warning}", err=True)
    click.confirm(question, err=True, abort=True)


def guarded(act: Callable[[], T]) -> T:
    """Turn what an operator can mend into lines without a traceback."""
    try:
        return act()
    except (SettingsError, SchemaError, SchemaNewerError, KeyStoreError, ListenError) as error:
        fail(str(error))
    except Problem as problem:
        fail(problem.detail)
    except StorageUnavailable as error:
        fail(f"the database cannot be used ({error}); check database.url and that PostgreSQL runs")
    except DBAPIError as error:
        fail(f"the database refused: {str(error.orig).partition(chr(10))[0]}")
    except ComponentEnded as error:
        fail(f"{error} ended: {error.__cause__}")


def fail(message: str) -> NoReturn:
    """End with status 1 and the lines of ``message``."""
    for line in message.splitlines():
        click.echo(f"bothy-server: {line}", err=True)
    sys.exit(1)


def instant(at: datetime) -> str:
    """How commands write an instant: in UTC, to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds")
