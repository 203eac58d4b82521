"""``bothy-server person``."""

from __future__ import annotations

import json

import click

from bothy_server import wiring
from bothy_server.commands.calls import as_json, with_admin


@click.group()
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

    _show_invite(name, with_admin(add), as_json)


@person.command("invite")
@click.argument("name")
@as_json
def person_invite(name: str, as_json: bool) -> None:
    """Print a one-time invite for one more device of a person."""

    async def invite(admin: wiring.Admin) -> dict[str, str]:
        person_id, code = await admin.login.invite(name)
        return {"person_id": str(person_id), "invite": code}

    _show_invite(name, with_admin(invite), as_json)


def _show_invite(name: str, made: dict[str, str], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(made))
    else:
        click.echo(f"invite for {name}, to be used once:\n\n    {made['invite']}\n")
        click.echo("On the person's computer: bothy login ADDRESS")
