"""The commands of ``bothy-server``."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeVar

import click
import uvloop
from sqlalchemy.exc import DBAPIError

from bothy_server import wiring
from bothy_server.cluster.domain.node import ListedNode
from bothy_server.doctor import report
from bothy_server.doctor.edge_probe import Edge
from bothy_server.doctor.examination import Examination
from bothy_server.hosts.domain.host import DUPLICATE_CONNECTION, Host, HostState
from bothy_server.identity.adapters.keystore.bundle import bundle_text, import_keys, read_bundle, write_bundle
from bothy_server.identity.adapters.keystore.store import KeyStoreError, SigningKey, add_key, load_keys
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.migrations.run import SchemaNewerError, upgrade
from bothy_server.platform.database import SchemaError, storage_errors
from bothy_server.platform.lifecycle import ComponentEnded, Lifecycle
from bothy_server.platform.load_settings import SettingsError, load_secrets, load_settings
from bothy_server.platform.logs import configure_logging
from bothy_server.platform.serving import ListenError
from bothy_server.platform.settings import Secrets, Settings
from bothy_server.platform.settings_reference import reference
from bothy_wire.signing import canonical_origin

T = TypeVar("T")
_log = logging.getLogger(__name__)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def _origin(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else canonical_origin(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("bothy-relay"), prog_name="bothy-server")
def bothy_server() -> None:
    """Run and administer a bothy relay. Settings come from BOTHY_* variables or the file named by BOTHY_CONFIG."""


@bothy_server.command()
@click.option("--role", type=click.Choice(["api", "worker", "all"]), help="Instead of the key server.role.")
def serve(role: str | None) -> None:
    """Run a node (role api), a worker, or both in one process (role all)."""
    settings = _settings()
    if role is not None:
        settings = settings.model_copy(update={"server": settings.server.model_copy(update={"role": role})})
    configure_logging(settings.log)
    if settings.server.role != "worker" and not settings.server.public_origins:
        _fail(
            "server.public_origins is empty: set it to the address that clients dial, such as https://relay.example.com"
        )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        _guarded(lambda: runner.run(_serve(settings)))


async def _serve(settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    async with Lifecycle() as parts:

        def leave() -> None:
            _log.info("leaving")
            parts.stop()

        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, leave)
        role = settings.server.role
        if role == "worker":
            internal = await wiring.start_worker(settings, parts)
            _log.info("ready", extra={"role": role, "internal": str(internal)})
        else:
            node = await wiring.start_node(settings, parts)
            addresses = {"public": str(node.public), "internal": str(node.internal)}
            _log.info("ready", extra={"role": role, "node": str(node.id), **addresses})
        await parts.until_stopped()


@bothy_server.command()
def migrate() -> None:
    """Bring the database to this version's tables. Safe to run from several machines at once."""
    database = _settings().database
    applied = _guarded(lambda: _upgrade(database.listen.get_secret_value(), database.connect_timeout))
    click.echo(f"applied {', '.join(applied)}" if applied else "nothing to do: the database is up to date")


def _upgrade(url: str, connect_timeout: float) -> list[str]:
    with storage_errors():
        return upgrade(url, connect_timeout)


@bothy_server.command("settings")
@click.option("--reference", "as_reference", is_flag=True, help="Print the documentation of every key instead.")
@as_json
def show_settings(as_reference: bool, as_json: bool) -> None:
    """Print the settings in force; secrets are left out."""
    if as_reference:
        click.echo(reference(), nl=False)
        return
    values = json.loads(_settings().model_dump_json(fallback=str))
    if as_json:
        click.echo(json.dumps(values))
        return
    for group, keys in values.items():
        for key, value in keys.items():
            click.echo(f"{group}.{key} = {json.dumps(value)}")


@bothy_server.command()
@click.option("--edge", metavar="URL", callback=_origin, help="The address that clients dial; its routing is proved.")
@click.option(
    "--nginx-conf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The edge's configuration, for what no request can show.",
)
@as_json
def doctor(edge: str | None, nginx_conf: Path | None, as_json: bool) -> None:
    """Look for faults of this installation and say how to mend them. Exit status 1 when a check failed."""

    def tell(checks: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"looking at {checks}", err=True)

    examination = Examination(_settings(), None if edge is None else Edge(edge), nginx_conf, tell)
    findings = asyncio.run(examination.run())
    click.echo(report.as_json(findings) if as_json else report.table(findings))
    sys.exit(0 if report.passed(findings) else 1)


@bothy_server.group()
def keys() -> None:
    """The server's signing keys (secrets.signing_key_dir)."""


@keys.command("init")
def keys_init() -> None:
    """Make the first signing key."""
    directory = _secrets().signing_key_dir
    if directory.exists() and any(directory.glob("*.json")):
        _fail(f"{directory} holds signing keys already; `bothy-server keys list` shows them")
    now = datetime.now(UTC)
    made = _guarded(lambda: add_key(directory, now, now))
    click.echo(f"made signing key {made.kid} in {directory}")


@keys.command("rotate")
def keys_rotate() -> None:
    """Make the next signing key; it signs after secrets.key_publish_lead."""
    settings = _secrets()
    now = datetime.now(UTC)
    _guarded(lambda: load_keys(settings.signing_key_dir))
    starts = now + timedelta(seconds=settings.key_publish_lead)
    made = _guarded(lambda: add_key(settings.signing_key_dir, now, starts))
    click.echo(f"made signing key {made.kid}; it signs from {starts.isoformat(timespec='seconds')}")


@keys.command("list")
@as_json
def keys_list(as_json: bool) -> None:
    """List the signing keys."""
    directory = _secrets().signing_key_dir
    found = _guarded(lambda: load_keys(directory))
    if as_json:
        click.echo(json.dumps({"keys": [_key(each) for each in found]}))
        return
    for each in found:
        click.echo(f"{each.kid}  signs from {each.signs_from.isoformat(timespec='seconds')}")


@keys.command("export")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@as_json
def keys_export(file: Path, as_json: bool) -> None:
    """Copy all signing keys into FILE, or to the output with `-`. Whoever reads the copy can sign as this server."""
    found = _guarded(lambda: load_keys(_secrets().signing_key_dir))
    if str(file) == "-":
        click.echo(bundle_text(found), nl=False)
        return
    _guarded(lambda: write_bundle(file, found))
    if as_json:
        click.echo(json.dumps({"keys": [_key(each) for each in found]}))
    else:
        click.echo(f"wrote {len(found)} signing keys to {file}; keep it as you keep the keys")


@keys.command("import")
@click.argument("file", type=click.File())
@as_json
def keys_import(file: TextIO, as_json: bool) -> None:
    """Add the signing keys of FILE, or of the input with `-`, made by `keys export`. All of them or none."""
    directory = _secrets().signing_key_dir
    try:
        text = file.read()
    except UnicodeDecodeError:
        _fail(f"{file.name} is no text")
    stored = _guarded(lambda: import_keys(directory, read_bundle(text)))
    if as_json:
        click.echo(json.dumps({"stored": [_key(each) for each in stored]}))
    else:
        click.echo(f"stored {len(stored)} signing keys in {directory}")


def _key(key: SigningKey) -> dict[str, str]:
    return {"kid": key.kid, "created_at": key.created_at.isoformat(), "signs_from": key.signs_from.isoformat()}


@bothy_server.group()
def person() -> None:
    """Persons."""


@person.command("add")
@click.argument("name")
@click.option("--operator", is_flag=True, help="May manage hosts and persons; gains no terminal by it.")
@as_json
def person_add(name: str, operator: bool, as_json: bool) -> None:
    """Add a person and print the one-time invite for their first device."""

    async def add(admin: wiring.Admin) -> dict[str, str]:
        person_id, invite = await admin.login.add_person(name, is_operator=operator)
        return {"person_id": str(person_id), "invite": invite}

    _show_invite(name, _with_admin(add), as_json)


@person.command("invite")
@click.argument("name")
@as_json
def person_invite(name: str, as_json: bool) -> None:
    """Print a one-time invite for one more device of a person."""

    async def invite(admin: wiring.Admin) -> dict[str, str]:
        person_id, code = await admin.login.invite(name)
        return {"person_id": str(person_id), "invite": code}

    _show_invite(name, _with_admin(invite), as_json)


def _show_invite(name: str, made: dict[str, str], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(made))
    else:
        click.echo(f"invite for {name}, to be used once:\n\n    {made['invite']}\n")
        click.echo("On the person's computer: bothy login ADDRESS")


@bothy_server.group()
def node() -> None:
    """Processes that share the database."""


@node.command("list")
@as_json
def node_list(as_json: bool) -> None:
    """List nodes and workers with what they last said of themselves."""
    found = _with_admin(lambda admin: admin.nodes.list())
    if as_json:
        click.echo(json.dumps({"nodes": [_listed_node(each) for each in found]}))
        return
    for each in found:
        figures = f"{each.figures.sides} sides, {each.figures.pairs} pairs"
        place = each.node.origin or "no public listener"
        click.echo(
            f"{each.node.id}  {each.node.role:<6}  {each.state:<7}  heard {each.silent_s:.0f} s ago  {figures}  {place}"
        )


def _listed_node(listed: ListedNode) -> dict[str, Any]:
    told = {"node_id": str(listed.node.id), "role": listed.node.role, "origin": listed.node.origin}
    times = {"started_at": listed.started_at.isoformat(), "silent_s": round(listed.silent_s, 1)}
    return {**told, "state": listed.state, "version": listed.node.version, **times, **asdict(listed.figures)}


@bothy_server.group()
def host() -> None:
    """Hosts."""


@host.command("add")
@click.argument("name")
@click.option("--owner", required=True, metavar="PERSON", help="Who owns the host and may open terminals on it.")
@as_json
def host_add(name: str, owner: str, as_json: bool) -> None:
    """Add a host and print its pairing code."""

    async def add(admin: wiring.Admin) -> dict[str, str]:
        made = await admin.pairing.create_for(name, owner)
        code, _ = await admin.pairing.issue_code(made.id, None)
        return {"host_id": str(made.id), "code": code}

    _show_code(name, _with_admin(add), as_json)


@host.command("code")
@click.argument("name")
@as_json
def host_code(name: str, as_json: bool) -> None:
    """Print a new pairing code. A host that is paired loses its keys and its sessions now."""

    async def issue(admin: wiring.Admin) -> dict[str, str]:
        found = await admin.pairing.find(name)
        code, _ = await admin.pairing.issue_code(found.id, None)
        return {"host_id": str(found.id), "code": code}

    _show_code(name, _with_admin(issue), as_json)


def _show_code(name: str, made: dict[str, str], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(made))
    else:
        click.echo(f"pairing code for {name}, to be used once:\n\n    {made['code']}\n")
        click.echo("On the machine: bothy-host pair ADDRESS")


@host.command("list")
@as_json
def host_list(as_json: bool) -> None:
    """List hosts that are not retired: state, when last seen, and what to do where something has to be done."""
    found = _with_admin(lambda admin: admin.pairing.list())
    if as_json:
        click.echo(json.dumps({"hosts": [_listed_host(each) for each in found]}))
        return
    for each in found:
        seen = f"last seen {_when(each.last_seen_at)}" if each.last_seen_at else "never seen"
        click.echo(f"{each.name}  {each.state.value}  {seen}{_advice(each)}")


def _listed_host(host: Host) -> dict[str, str | None]:
    seen = None if host.last_seen_at is None else _when(host.last_seen_at)
    told = {"host_id": str(host.id), "name": host.name, "state": host.state.value}
    return {**told, "disabled_reason": host.disabled_reason, "last_seen_at": seen}


def _advice(host: Host) -> str:
    match host.state:
        case HostState.DISABLED if host.disabled_reason == DUPLICATE_CONNECTION:
            return (
                "\n    two machines hold its key: stop the copy, then pair it again with"
                f" `bothy-server host code {host.name}`"
            )
        case HostState.DISABLED:
            return f"\n    `bothy-server host enable {host.name}` lets it dial in again"
        case HostState.PENDING if host.paired:
            return "\n    waits for its owner, who confirms the fingerprint that the machine printed"
        case HostState.PENDING:
            return f"\n    not paired: `bothy-server host code {host.name}` makes a pairing code"
        case _:
            return ""


def _when(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")


@host.command("disable")
@click.argument("name")
@as_json
def host_disable(name: str, as_json: bool) -> None:
    """End a host's sessions and connections and open no more, until it is enabled."""
    _set_state(name, HostState.DISABLED, as_json)


@host.command("enable")
@click.argument("name")
@as_json
def host_enable(name: str, as_json: bool) -> None:
    """Let a disabled host dial in again."""
    _set_state(name, HostState.ACTIVE, as_json)


@host.command("retire")
@click.argument("name")
@as_json
def host_retire(name: str, as_json: bool) -> None:
    """End a host for good; its name is free again."""
    _set_state(name, HostState.RETIRED, as_json)


def _set_state(name: str, state: HostState, as_json: bool) -> None:
    async def set_state(admin: wiring.Admin) -> dict[str, str]:
        found = await admin.pairing.find(name)
        await admin.transitions.set_state(found.id, state, None)
        return {"host_id": str(found.id), "state": state.value}

    made = _with_admin(set_state)
    click.echo(json.dumps(made) if as_json else f"{name} is {state.value}")


def _with_admin(act: Callable[[wiring.Admin], Coroutine[Any, Any, T]]) -> T:
    settings = _settings()

    async def run() -> T:
        async with wiring.admin(settings) as admin:
            return await act(admin)

    return _guarded(lambda: asyncio.run(run()))


def _settings() -> Settings:
    return _guarded(load_settings)


def _secrets() -> Secrets:
    """What the keys need: they are made on machines that know no database."""
    return _guarded(load_secrets)


def _guarded(act: Callable[[], T]) -> T:
    """Turn what an operator can mend into lines without a traceback."""
    try:
        return act()
    except (SettingsError, SchemaError, SchemaNewerError, KeyStoreError, ListenError) as error:
        _fail(str(error))
    except Problem as problem:
        _fail(problem.detail)
    except StorageUnavailable as error:
        _fail(f"the database cannot be used ({error}); check database.url and that PostgreSQL runs")
    except DBAPIError as error:
        _fail(f"the database refused: {str(error.orig).partition(chr(10))[0]}")
    except ComponentEnded as error:
        _fail(f"{error} ended: {error.__cause__}")


def _fail(message: str) -> NoReturn:
    for line in message.splitlines():
        click.echo(f"bothy-server: {line}", err=True)
    sys.exit(1)
