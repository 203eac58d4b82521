"""The command ``bothy-host``."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import click

from bothy_host import rest, service, settings, state
from bothy_host.authorized_devices import AuthorizedDevicesError
from bothy_wire.limits import PROTOCOL_VERSION
from bothy_wire.printable import printable
from bothy_wire.signing import canonical_origin, fingerprint


def main() -> NoReturn:
    """The entry point: every error is one line that says what to do, and an exit status."""
    try:
        status = _commands.main(prog_name="bothy-host", standalone_mode=False)
    except (rest.PairError, settings.SettingsError, state.StateError, AuthorizedDevicesError) as error:
        _end(str(error), 1)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "bothy-host"
        _end(f"{error.format_message()} ({command} --help explains)", 2)
    except click.Abort:
        _end("interrupted", 130)
    sys.exit(status or 0)


def _end(message: str, status: int) -> NoReturn:
    click.echo(f"bothy-host: {message}", err=True)
    sys.exit(status)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    version("bothy-relay"), message=f"bothy-host %(version)s, protocol {PROTOCOL_VERSION} to {PROTOCOL_VERSION}"
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help=f"Settings file; {settings.DEFAULT_PATH} when it is not given.",
)
@click.pass_context
def _commands(context: click.Context, config: Path | None) -> None:
    """The host service of bothy: makes this machine reachable through a relay."""
    context.obj = config


@_commands.command()
@click.argument("url")
@click.argument("code", required=False)
@click.pass_obj
def pair(config: Path | None, url: str, code: str | None) -> None:
    """Pair this machine with the relay at URL.

    CODE is better typed at the prompt or piped in, because arguments show in the process list.
    """
    loaded = settings.load(config)
    audience = _audience(loaded, url)
    state_dir = Path(loaded.state_dir)
    with state.locked(state_dir):
        paired, host_state = rest.pair(
            audience, code or _ask_code(), tls=ssl.create_default_context(), timeout=loaded.host.dial_timeout
        )
        state.save(state_dir, paired)
    click.echo(f"host         {printable(paired.name)}")
    click.echo(f"state        {printable(host_state)}")
    click.echo(f"channel key  {fingerprint(paired.channel_public)}")
    if host_state == "pending":
        click.echo("The owner compares this fingerprint and confirms it; then this host can be used.")


@_commands.command()
@click.pass_obj
def run(config: Path | None) -> int:
    """Serve this machine until it is told to stop.

    Exit status 3 means: do not start me again, read the last line.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    # It logs a traceback for handshakes that fail; the service says the same in one line.
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    loaded = settings.load(config)
    service.check(loaded, config or settings.DEFAULT_PATH)
    return asyncio.run(service.run(loaded))


@_commands.command()
@click.pass_obj
def doctor(config: Path | None) -> int:
    """Name what is set up wrong here, and how to mend it.

    Run it as the account of the service. Exit status 1 when something failed.
    """
    from bothy_host.doctor import Verdict, examine

    findings = asyncio.run(examine(settings.load(config), config or settings.DEFAULT_PATH))
    for each in findings:
        click.echo(f"{each.verdict.value:<7}{each.check:<17}{printable(each.seen)}")
        if each.verdict is Verdict.FAILED:
            click.echo(f"{'':<7}fix: {each.fix}")
    return int(any(each.verdict is Verdict.FAILED for each in findings))


def _audience(loaded: settings.Settings, url: str) -> str:
    try:
        audience = canonical_origin(url)
    except ValueError:
        raise rest.PairError(f"{url} is no address of a relay; one looks like https://relay.example.com") from None
    if urlsplit(url).path not in ("", "/") or urlsplit(url).query:
        raise rest.PairError(f"{url}: only the address of the relay is needed, {audience}")
    if loaded.server is not None and canonical_origin(loaded.server) != audience:
        raise rest.PairError(f"{audience}: the settings name another relay, {loaded.server}")
    return audience


def _ask_code() -> str:
    code: str = click.prompt("Pairing code", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    if not code.strip():
        raise rest.PairError("a pairing code is needed")
    return code.strip()
