"""``bothy-server settings``."""

from __future__ import annotations

import json

import click

from bothy_server.commands.calls import as_json, settings_in_force
from bothy_server.platform.settings_reference import reference


@click.command("settings")
@click.option("--reference", "as_reference", is_flag=True, help="Print the documentation of every key instead.")
@as_json
def show_settings(as_reference: bool, as_json: bool) -> None:
    """Print the settings in force; secrets are left out."""
    if as_reference:
        click.echo(reference(), nl=False)
        return
    values = json.loads(settings_in_force().model_dump_json(fallback=str))
    if as_json:
        click.echo(json.dumps(values))
        return
    for group, keys in values.items():
        for key, value in keys.items():
            click.echo(f"{group}.{key} = {json.dumps(value)}")
