"""``bothy-server keys``."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

import click
from sqlalchemy.exc import DBAPIError

from bothy_server import wiring
from bothy_server.commands.calls import as_json, fail, guarded, key_settings_in_force, with_admin
from bothy_server.identity.adapters.keystore.bundle import bundle_text, import_keys, read_bundle, write_bundle
from bothy_server.identity.adapters.keystore.rotation import (
    CannotRetireError,
    KeyState,
    SigningKey,
    check_retirement,
    state_of,
)
from bothy_server.identity.adapters.keystore.store import KeyStoreError, add_key, key_files, load_keys, retire_key
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.database import SchemaError
from bothy_server.platform.load_settings import SettingsError, load_settings

_LONGEST_COPY = 1 << 20
"""Characters: thousands of keys."""

_CARRY = "where nodes hold copies, carry the keys to each of them: `bothy-server keys export` and `import`"


@click.group()
def keys() -> None:
    """The server's signing keys (secrets.signing_key_dir)."""


@keys.command("init")
def keys_init() -> None:
    """Make the first signing key."""
    directory = key_settings_in_force().secrets.signing_key_dir
    if guarded(lambda: key_files(directory)):
        fail(f"{directory} holds signing keys already; `bothy-server keys list` shows them")
    now = datetime.now(UTC)
    made = guarded(lambda: add_key(directory, now, now))
    click.echo(f"made signing key {made.kid} in {directory}")


@keys.command("rotate")
@click.option(
    "--now", "at_once", is_flag=True, help="Let it sign as soon as it may, because the one in use was stolen."
)
@as_json
def keys_rotate(at_once: bool, as_json: bool) -> None:
    """Make the next signing key; it signs when it was published for secrets.key_publish_lead everywhere."""
    secrets, now = key_settings_in_force().secrets, datetime.now(UTC)
    found = guarded(lambda: load_keys(secrets.signing_key_dir))
    if newer := [each for each in found if each.created_at > now]:
        fail(f"{newer[0].kid} was made at {_time(newer[0].created_at)}, which is still to come here: set the clock")
    waiting = [each for each in found if state_of(each, found, now) is KeyState.NEXT]
    if waiting and not at_once:
        fail(f"{waiting[0].kid} is there and signs from {_time(waiting[0].signs_from)}; nothing was made")
    # A node may read the folder as late as that, and has to publish the key for the whole lead.
    starts = now if at_once else now + timedelta(seconds=secrets.key_publish_lead + secrets.reload_interval)
    made = guarded(lambda: add_key(secrets.signing_key_dir, now, starts))
    told = _tell_nodes()
    if as_json:
        click.echo(json.dumps({"made": _key(made, (*found, made), now), "nodes_told": told}))
        return
    click.echo(f"made signing key {made.kid}; it signs from {_time(starts)}")
    click.echo(_when_nodes_know(told))
    click.echo(_CARRY)
    for each in found:
        if each.retired_at is None:
            when = "--now " if at_once else ""
            click.echo(f"once it signs, run `bothy-server keys retire {when}{each.kid}`")


@keys.command("retire", context_settings={"ignore_unknown_options": True})  # an older key may be called -0..
@click.argument("kid", metavar="KID")
@click.option("--now", "at_once", is_flag=True, help="Refuse what it signed from now on, because it was stolen.")
@as_json
def keys_retire(kid: str, at_once: bool, as_json: bool) -> None:
    """Let an older key sign no more; what it signed is good until the last token has died."""
    settings, now = key_settings_in_force(), datetime.now(UTC)
    directory = settings.secrets.signing_key_dir
    found = guarded(lambda: load_keys(directory))
    try:
        check_retirement(kid, found, now, timedelta(seconds=settings.secrets.key_publish_lead), at_once=at_once)
    except CannotRetireError as error:
        fail(str(error))
    if not at_once and (signing := _nodes_that_sign_with(kid)):
        fail(f"node {', '.join(signing)} signs with it; see `checks` under /readyz there, and try again")
    outlived = timedelta(seconds=settings.longest_life + settings.secrets.reload_interval)
    key = next(each for each in found if each.kid == kid)
    retired = guarded(lambda: retire_key(directory, key, now if at_once else now + outlived))
    told = _tell_nodes()
    if as_json:
        click.echo(json.dumps({"retired": _key(retired, (retired,), now), "nodes_told": told}))
        return
    click.echo(f"{kid} signs no more; {_until(retired, now)}")
    click.echo(_when_nodes_know(told))
    click.echo(_CARRY)


@keys.command("list")
@as_json
def keys_list(as_json: bool) -> None:
    """List the signing keys, and what each is for by the times in its file."""
    directory, now = key_settings_in_force().secrets.signing_key_dir, datetime.now(UTC)
    found = guarded(lambda: load_keys(directory))
    if as_json:
        click.echo(_as_text(found, now))
        return
    for each in found:
        click.echo(f"{each.kid}  {_meaning(each, found, now)}")


@keys.command("export")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@as_json
def keys_export(file: Path, as_json: bool) -> None:
    """Copy all signing keys into FILE, or to the output with `-`. Whoever reads the copy can sign as this server."""
    found = guarded(lambda: load_keys(key_settings_in_force().secrets.signing_key_dir))
    if str(file) == "-":
        if sys.stdout.isatty():
            fail("the output is a terminal: name a file, or lead the output to one or to a program")
        click.echo(bundle_text(found), nl=False)
        return
    guarded(lambda: write_bundle(file, found))
    if as_json:
        click.echo(_as_text(found, datetime.now(UTC)))
    else:
        click.echo(f"wrote {len(found)} signing keys to {file}; keep it as you keep the keys")


@keys.command("import")
@click.argument("file", type=click.File())
@as_json
def keys_import(file: TextIO, as_json: bool) -> None:
    """Add the signing keys of FILE, or of the input with `-`, made by `keys export`. All of them or none."""
    directory, now = key_settings_in_force().secrets.signing_key_dir, datetime.now(UTC)
    try:
        text = file.read(_LONGEST_COPY)
    except UnicodeDecodeError:
        fail(f"{file.name} is no text")
    found = guarded(lambda: read_bundle(text))
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
        click.echo(f"bothy-server: others may read {file.name}: whoever did can sign as this server", err=True)
    stored = guarded(lambda: import_keys(directory, found))
    told = bool(stored) and _tell_nodes()
    if as_json:
        click.echo(json.dumps({"stored": [_key(each, found, now) for each in stored], "nodes_told": told}))
        return
    click.echo(f"stored {len(stored)} signing keys in {directory}")
    if stored:
        click.echo(_when_nodes_know(told))


def _tell_nodes() -> bool:
    """Let every node read its folder now; whether they could be told. If not, they read it soon anyway."""
    try:
        settings = load_settings()
    except SettingsError:  # a machine that only holds keys
        return False

    async def tell() -> None:
        async with wiring.admin(settings) as admin:
            await admin.tell_keys_changed()

    try:
        asyncio.run(tell())
    except (StorageUnavailable, SchemaError, DBAPIError, KeyStoreError):
        return False
    return True


def _nodes_that_sign_with(kid: str) -> list[str]:
    try:
        settings = load_settings()
    except SettingsError as error:  # a machine that only holds keys, or a mistake in the settings
        click.echo(f"bothy-server: the nodes were not asked whether one signs with it: {error}", err=True)
        return []
    return [
        str(each.node.id)
        for each in with_admin(lambda admin: admin.nodes.list())
        if each.figures.signs_with == kid and each.heard(settings.cluster.status_interval)
    ]


def _when_nodes_know(told: bool) -> str:
    if told:
        return "every node was told to read its folder"
    return "the nodes could not be told; each reads its folder within secrets.reload_interval"


def _meaning(key: SigningKey, keys: Collection[SigningKey], now: datetime) -> str:
    match state_of(key, keys, now):
        case KeyState.NEXT:
            return f"next: signs from {_time(key.signs_from)}"
        case KeyState.SIGNS:
            return f"signs since {_time(key.signs_from)}"
        case KeyState.VERIFIES | KeyState.RETIRED:
            return _until(key, now)


def _until(key: SigningKey, now: datetime) -> str:
    if key.retired_at is None:
        return "verifies until it is retired: `bothy-server keys retire`"
    return f"verifies until {_time(key.retired_at)}" if key.verifies(now) else f"retired since {_time(key.retired_at)}"


def _as_text(keys: Collection[SigningKey], now: datetime) -> str:
    return json.dumps({"keys": [_key(each, keys, now) for each in keys]})


def _key(key: SigningKey, keys: Collection[SigningKey], now: datetime) -> dict[str, str | None]:
    times = {"created_at": key.created_at.isoformat(), "signs_from": key.signs_from.isoformat()}
    retired_at = None if key.retired_at is None else key.retired_at.isoformat()
    return {"kid": key.kid, "state": state_of(key, keys, now), **times, "retired_at": retired_at}


def _time(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds")
