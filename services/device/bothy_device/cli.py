"""The command ``bothy``. Everything heavy is imported by the command that needs it: start time is felt at every call."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from bothy_device.asking import ask, json_option, known_login, run, server_option
from bothy_device.device_commands import devices
from bothy_device.failure import Failure
from bothy_device.host_commands import hosts

if TYPE_CHECKING:
    from bothy_device.opening import Opening
    from bothy_device.rest import Rest, SessionRow

F = TypeVar("F", bound=Callable[..., Any])


def _no_reconnect_option(command: F) -> F:
    words = "End at the first loss of the connection, for scripts."
    return click.option("--no-reconnect", is_flag=True, help=words)(command)


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"bothy {version('bothy-relay')}")
        context.exit()


class _Tree(click.Group):
    """Its help lists the commands of its groups, too."""

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """One line each."""
        with formatter.section("Commands"):
            formatter.write_dl([(words, command.get_short_help_str(80)) for words, command in _leaves(self)])


def _leaves(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield before + name, command
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{before}{name} ")


@click.group(cls=_Tree, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="The version."
)
def cli() -> None:
    """A terminal on a host that nobody can reach from outside, encrypted end to end."""


@cli.command()
@click.argument("url")
@click.option(
    "--invite", metavar="CODE", help="The invite code; asked for, or read from standard input, when left out."
)
@click.option("--approve", is_flag=True, help="Without an invite: you let this machine in on another device of yours.")
@click.option("--name", metavar="NAME", help="What this device is called; the machine's name when left out.")
def login(url: str, invite: str | None, approve: bool, name: str | None) -> None:
    """Make this machine a device of yours."""
    from bothy_device.account import log_in, log_in_by_approval

    if approve:
        if invite is not None:
            raise click.UsageError("--invite and --approve are two ways; choose one")
        log_in_by_approval(url, name)
        return
    if invite is None:
        invite = click.prompt("Invite code", err=True) if sys.stdin.isatty() else sys.stdin.readline()
    log_in(url, invite, name)


@cli.command()
@server_option
def logout(server: str | None) -> None:
    """Revoke this device at a relay, and forget its keys.

    Where the relay cannot be reached, they are forgotten all the same.
    """
    from bothy_device.account import log_out

    log_out(server)


cli.add_command(hosts)


@cli.command(name="open")
@click.argument("host")
@click.option("--profile", metavar="NAME", help="What to run; needed when there are several.")
@click.option("--user", metavar="NAME", help="As whom; needed when there are several.")
@click.option("--host-key", metavar="FINGERPRINT", help="The only key to accept, as the host's owner told it.")
@_no_reconnect_option
@server_option
def open_(
    host: str, profile: str | None, user: str | None, host_key: str | None, server: str | None, no_reconnect: bool
) -> int:
    """Open a terminal on HOST, a name or an id."""
    return run(_opening(server, reconnects=not no_reconnect).open(host, profile, user, host_key))


@cli.command()
@click.argument("session")
@_no_reconnect_option
@server_option
def attach(session: str, server: str | None, no_reconnect: bool) -> int:
    """Go on with SESSION.

    The beginning of its id is enough.
    """
    return run(_opening(server, reconnects=not no_reconnect).attach(session))


@cli.command()
@click.option("--all", "ended", is_flag=True, help="With those that have ended.")
@click.option("--host", metavar="HOST", help="Everybody's on a host that you own.")
@server_option
@json_option
def sessions(ended: bool, host: str | None, server: str | None, as_json: bool) -> None:
    """List your sessions, or those on a host of yours."""
    from bothy_device.choice import find_host
    from bothy_device.tables import print_sessions

    async def listed(rest: Rest) -> list[SessionRow]:
        if host is None:
            return await rest.sessions(ended=ended)
        return await rest.sessions_of_host(find_host(await rest.hosts(), host).host_id, ended=ended)

    print_sessions(ask(server, listed), as_json=as_json)


@cli.command()
@click.argument("session")
@server_option
def close(session: str, server: str | None) -> None:
    """End SESSION and what runs in it.

    The beginning of its id is enough.
    """
    from bothy_device.choice import find_session

    async def end(rest: Rest) -> str:
        found = find_session(await rest.sessions(ended=True), session)
        return str((await rest.close(found.session_id)).session_id)

    click.echo(f"closed {ask(server, end)}")


@cli.command()
@click.argument("host")
@click.argument("session")
@server_option
def terminate(host: str, session: str, server: str | None) -> None:
    """End anybody's SESSION on HOST, as its owner.

    The beginning of the session's id is enough; `bothy sessions --host HOST` lists them.
    """
    from bothy_device.choice import find_host, find_session

    async def end(rest: Rest) -> str:
        listed = await rest.sessions_of_host(find_host(await rest.hosts(), host).host_id, ended=True)
        return str((await rest.terminate(find_session(listed, session, host).session_id)).session_id)

    click.echo(f"terminated {ask(server, end)}")


cli.add_command(devices)


@cli.group(cls=click.Group)
def device() -> None:
    """This device."""


@device.command()
@server_option
def show(server: str | None) -> None:
    """Show this device's keys.

    The last line is the one for a host's authorized_devices.
    """
    from bothy_device.account import describe

    click.echo(describe(known_login(server)))


def _opening(server: str | None, *, reconnects: bool) -> Opening:
    from bothy_device.known_hosts import KnownHosts
    from bothy_device.opening import Opening
    from bothy_device.settings import load
    from bothy_device.state import home

    settings, known_hosts = load(home() / "config.toml"), KnownHosts(home() / "known_hosts")
    return Opening(known_login(server), settings, known_hosts, reconnects=reconnects)


def main() -> NoReturn:
    """The entry point: every error is one line that says what to do, and an exit status."""
    try:
        status = cli.main(prog_name="bothy", standalone_mode=False)
    except Failure as failure:
        _end(failure.message, failure.status)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "bothy"
        _end(f"{error.format_message()} ({command} --help explains)", 2)
    except click.Abort:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # who presses twice wants no traceback
        _end("interrupted", 130)
    sys.exit(status or 0)


def _end(message: str, status: int) -> NoReturn:
    click.echo(f"bothy: {message}", err=True)
    sys.exit(status)
