"""``bothy-server migrate``."""

from __future__ import annotations

import click

from bothy_server.commands.calls import guarded, settings_in_force
from bothy_server.migrations.run import upgrade
from bothy_server.platform.database import storage_errors


@click.command()
def migrate() -> None:
    """Bring the database to this version's tables. Safe to run from several machines at once."""
    database = settings_in_force().database
    applied = guarded(lambda: _upgrade(database.listen.get_secret_value(), database.connect_timeout))
    click.echo(f"applied {', '.join(applied)}" if applied else "nothing to do: the database is up to date")


def _upgrade(url: str, connect_timeout: float) -> list[str]:
    with storage_errors():
        return upgrade(url, connect_timeout)
