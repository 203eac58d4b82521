"""The command ``bothy-host``."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import click

from bothy_host import rest, service, settings, state
from bothy_host.authorized_devices import AuthorizedDevicesError
from bothy_wire.limits import PROTOCOL_VERSION
from bothy_wire.signing import canonical_origin, fingerprint


def main() -> None:
    """Entry point."""
    _commands(prog_name="bothy-host")


@click.group()
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
    try:
        context.obj = settings.load(config)
    except settings.SettingsError as error:
        raise click.ClickException(str(error)) from error


@_commands.command()
@click.argument("url")
@click.argument("code", required=False)
@click.pass_obj
def pair(loaded: settings.Settings, url: str, code: str | None) -> None:
    """Pair this machine with the server at URL.

    CODE is better typed at the prompt or piped in, because arguments show in the process list.
    """
    try:
        audience = _audience(loaded, url)
        state_dir = Path(loaded.state_dir)
        with state.locked(state_dir):
            paired, host_state = rest.pair(
                audience, code or _ask_code(), tls=ssl.create_default_context(), timeout=loaded.host.dial_timeout
            )
            state.save(state_dir, paired)
    except (rest.PairError, state.StateError, settings.SettingsError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"host         {paired.name}")
    click.echo(f"state        {host_state}")
    click.echo(f"channel key  {fingerprint(paired.channel_public)}")
    if host_state == "pending":
        click.echo("The owner compares this fingerprint and confirms it; then this host can be used.")


@_commands.command()
@click.pass_obj
def run(loaded: settings.Settings) -> None:
    """Serve this machine until it is told to stop. Exit status 3 means: do not start me again, read the last line."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    # It logs a traceback for handshakes that fail; the service says the same in one line.
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    try:
        service.check(loaded)
        sys.exit(asyncio.run(service.run(loaded)))
    except (settings.SettingsError, state.StateError, AuthorizedDevicesError) as error:
        raise click.ClickException(str(error)) from error


def _audience(loaded: settings.Settings, url: str) -> str:
    try:
        audience = canonical_origin(url)
    except ValueError as error:
        raise rest.PairError(f"{url}: {error}") from error
    if urlsplit(url).path not in ("", "/") or urlsplit(url).query:
        raise rest.PairError(f"{url}: only the address of the server is needed, {audience}")
    if loaded.server is not None and canonical_origin(loaded.server) != audience:
        raise rest.PairError(f"{audience}: the settings name another server, {loaded.server}")
    return audience


def _ask_code() -> str:
    code: str = click.prompt("Pairing code", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    if not code.strip():
        raise rest.PairError("a pairing code is needed")
    return code.strip()
