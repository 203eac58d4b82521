"""``bothy-server``: runs a node or a worker, and the few acts that need no node."""

from __future__ import annotations

import sys
from typing import NoReturn

import click


def main() -> NoReturn:
    """The entry point: every error is one line, and an exit status; a missing ``server`` extra says what to install."""
    try:
        from bothy_server.commands import bothy_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in {"bothy_server", "bothy_wire"}:
            raise
        _end(f"{error.name} is not installed; install the server with: pip install 'bothy-relay[server]'", 1)
    try:
        status = bothy_server.main(prog_name="bothy-server", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "bothy-server"
        _end(f"{error.format_message()} ({command} --help explains)", 2)
    except click.Abort:
        _end("interrupted", 130)
    sys.exit(status or 0)


def _end(message: str, status: int) -> NoReturn:
    click.echo(f"bothy-server: {message}", err=True)
    sys.exit(status)
