"""What the commands that ask the relay share. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bothy_device.failure import Failure

if TYPE_CHECKING:
    from bothy_device.rest import Rest
    from bothy_device.state import Login

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def server_option(command: F) -> F:
    """``--server``."""
    return click.option("--server", metavar="URL", help="Another relay than the default one.")(command)


def json_option(command: F) -> F:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="For programs.")(command)


def make_sure(warning: str, question: str) -> None:
    """Ask before what cannot be undone. Where nobody can be asked, raise :class:`Failure`, which names ``--yes``."""
    if not sys.stdin.isatty():
        raise Failure(f"{warning}; --yes does it")
    click.echo(f"bothy: {warning}", err=True)
    click.confirm(question, err=True, abort=True)


def run(talk: Coroutine[Any, Any, T]) -> T:
    """Carry it through."""
    import asyncio

    from bothy_device.loop import Loop

    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(talk)


def known_login(server: str | None) -> Login:
    """Who this machine is at a relay, or at the default one. Raises :class:`Failure`."""
    from bothy_device.state import Logins, home

    return Logins(home()).load(server)


def ask(server: str | None, question: Callable[[Rest], Coroutine[Any, Any, T]]) -> T:
    """One visit to the relay. Raises :class:`Failure`."""
    from bothy_device.rest import Rest
    from bothy_device.settings import load
    from bothy_device.state import home

    known = known_login(server)
    timeout = load(home() / "config.toml").device.request_timeout

    async def talk() -> T:
        async with Rest(known.server, timeout=timeout, login=known) as rest:
            return await question(rest)

    return run(talk())
