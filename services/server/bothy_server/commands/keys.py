"""``bothy-server keys``."""

from __future__ import annotations

import json
import os
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

import click

from bothy_server.commands.calls import as_json, fail, guarded, secrets_in_force
from bothy_server.identity.adapters.keystore.bundle import bundle_text, import_keys, read_bundle, write_bundle
from bothy_server.identity.adapters.keystore.store import SigningKey, add_key, key_files, load_keys

_LONGEST_COPY = 1 << 20
"""Characters: thousands of keys."""


@click.group()
def keys() -> None:
    """The server's signing keys (secrets.signing_key_dir)."""


@keys.command("init")
def keys_init() -> None:
    """Make the first signing key."""
    directory = secrets_in_force().signing_key_dir
    if guarded(lambda: key_files(directory)):
        fail(f"{directory} holds signing keys already; `bothy-server keys list` shows them")
    now = datetime.now(UTC)
    made = guarded(lambda: add_key(directory, now, now))
    click.echo(f"made signing key {made.kid} in {directory}")


@keys.command("rotate")
def keys_rotate() -> None:
    """Make the next signing key; it signs after secrets.key_publish_lead."""
    settings = secrets_in_force()
    now = datetime.now(UTC)
    guarded(lambda: load_keys(settings.signing_key_dir))
    starts = now + timedelta(seconds=settings.key_publish_lead)
    made = guarded(lambda: add_key(settings.signing_key_dir, now, starts))
    click.echo(f"made signing key {made.kid}; it signs from {starts.isoformat(timespec='seconds')}")


@keys.command("list")
@as_json
def keys_list(as_json: bool) -> None:
    """List the signing keys."""
    directory = secrets_in_force().signing_key_dir
    found = guarded(lambda: load_keys(directory))
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
    found = guarded(lambda: load_keys(secrets_in_force().signing_key_dir))
    if str(file) == "-":
        if sys.stdout.isatty():
            fail("the output is a terminal: name a file, or lead the output to one or to a program")
        click.echo(bundle_text(found), nl=False)
        return
    guarded(lambda: write_bundle(file, found))
    if as_json:
        click.echo(json.dumps({"keys": [_key(each) for each in found]}))
    else:
        click.echo(f"wrote {len(found)} signing keys to {file}; keep it as you keep the keys")


@keys.command("import")
@click.argument("file", type=click.File())
@as_json
def keys_import(file: TextIO, as_json: bool) -> None:
    """Add the signing keys of FILE, or of the input with `-`, made by `keys export`. All of them or none."""
    directory = secrets_in_force().signing_key_dir
    try:
        text = file.read(_LONGEST_COPY)
    except UnicodeDecodeError:
        fail(f"{file.name} is no text")
    found = guarded(lambda: read_bundle(text))
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
        click.echo(f"bothy-server: others may read {file.name}: whoever did can sign as this server", err=True)
    stored = guarded(lambda: import_keys(directory, found))
    if as_json:
        click.echo(json.dumps({"stored": [_key(each) for each in stored]}))
    else:
        click.echo(f"stored {len(stored)} signing keys in {directory}")


def _key(key: SigningKey) -> dict[str, str]:
    return {"kid": key.kid, "created_at": key.created_at.isoformat(), "signs_from": key.signs_from.isoformat()}
