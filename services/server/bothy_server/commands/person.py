"""``bothy-server person``."""

from __future__ import annotations

import json

import click

from bothy_server import wiring
from bothy_server.commands.calls import as_json, instant, with_admin
from bothy_server.identity.app.invites import Invited
from bothy_server.identity.app.people import Person


@click.group()
def person() -> None:
    """Persons."""


@person.command("add")
@click.argument("name")
@click.option("--operator", is_flag=True, help="May manage hosts and persons; gains no terminal by it.")
@as_json
def person_add(name: str, operator: bool, as_json: bool) -> None:
    """Add a person and print the one-time invite for their first device."""
    _show_invite(with_admin(lambda admin: admin.people.add(name, is_operator=operator)), as_json)


@person.command("invite")
@click.argument("name")
@as_json
def person_invite(name: str, as_json: bool) -> None:
    """Print a one-time invite for one more device of a person."""

    async def invite(admin: wiring.Admin) -> Invited:
        return await admin.people.invite((await admin.people.find(name)).id)

    _show_invite(with_admin(invite), as_json)


def _show_invite(invited: Invited, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"person_id": str(invited.person_id), "invite": invited.code}))
    else:
        click.echo(f"invite for {invited.name}, to be used once:\n\n    {invited.code}\n")
        click.echo("On the person's computer: bothy login ADDRESS")


@person.command("list")
@as_json
def person_list(as_json: bool) -> None:
    """List persons: how many devices they have, when the last was used, and who may not act."""
    found = with_admin(lambda admin: admin.people.list(None))
    if as_json:
        click.echo(json.dumps({"persons": [_listed(each) for each in found]}))
        return
    for each in found:
        used = f"last used {instant(each.last_used_at)}" if each.last_used_at else "never used"
        devices = "1 device" if each.devices == 1 else f"{each.devices} devices"
        kind = "  operator" if each.is_operator else ""
        disabled = "" if each.disabled_at is None else f"  disabled since {instant(each.disabled_at)}"
        click.echo(f"{each.name}  {devices}  {used}{kind}{disabled}")


def _listed(person: Person) -> dict[str, str | int | bool | None]:
    return {
        "person_id": str(person.id),
        "name": person.name,
        "is_operator": person.is_operator,
        "devices": person.devices,
        "last_used_at": None if person.last_used_at is None else instant(person.last_used_at),
        "disabled_at": None if person.disabled_at is None else instant(person.disabled_at),
    }


@person.command("disable")
@click.argument("name")
@as_json
def person_disable(name: str, as_json: bool) -> None:
    """End all that a person has running, on every node, and let none of their devices in until they are enabled."""
    _set_state(name, as_json, enabled=False)


@person.command("enable")
@click.argument("name")
@as_json
def person_enable(name: str, as_json: bool) -> None:
    """Let a disabled person's devices in again."""
    _set_state(name, as_json, enabled=True)


def _set_state(name: str, as_json: bool, *, enabled: bool) -> None:
    async def set_state(admin: wiring.Admin) -> Person:
        return await admin.people.set_state((await admin.people.find(name)).id, enabled=enabled)

    changed = with_admin(set_state)
    state = "enabled" if changed.disabled_at is None else "disabled"
    click.echo(json.dumps({"person_id": str(changed.id), "state": state}) if as_json else f"{name} is {state}")


@person.command("operator")
@click.argument("name")
@click.option("--on/--off", "is_operator", required=True, help="Whether they may manage hosts and persons.")
@as_json
def person_operator(name: str, is_operator: bool, as_json: bool) -> None:
    """Make a person an operator, or no operator any more."""

    async def set_operator(admin: wiring.Admin) -> Person:
        return await admin.people.set_operator((await admin.people.find(name)).id, is_operator=is_operator)

    changed = with_admin(set_operator)
    if as_json:
        click.echo(json.dumps({"person_id": str(changed.id), "is_operator": changed.is_operator}))
    else:
        click.echo(f"{name} is {'an operator' if changed.is_operator else 'no operator'}")
