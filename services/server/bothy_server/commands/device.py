"""``bothy-server device``."""

from __future__ import annotations

import json

import click

from bothy_server import wiring
from bothy_server.commands.calls import as_json, instant, with_admin
from bothy_server.identity.app.devices import KnownDevice
from bothy_wire.ids import DeviceId, parse_id


@click.group()
def device() -> None:
    """Devices of persons."""


@device.command("list")
@click.argument("person")
@as_json
def device_list(person: str, as_json: bool) -> None:
    """List the devices of PERSON, oldest first, with those that are revoked."""

    async def find(admin: wiring.Admin) -> list[KnownDevice]:
        return await admin.devices.list(None, (await admin.people.find(person)).id)

    found = with_admin(find)
    if as_json:
        click.echo(json.dumps({"devices": [_listed(each) for each in found]}))
        return
    for each in found:
        used = f"last used {instant(each.last_used_at)}" if each.last_used_at else "never used"
        revoked = "" if each.revoked_at is None else f"  revoked {instant(each.revoked_at)}"
        click.echo(f"{each.id}  {each.name}  {each.kind} by {each.added_by}  {used}{revoked}")


@device.command("revoke")
@click.argument("device_id", metavar="ID")
@as_json
def device_revoke(device_id: str, as_json: bool) -> None:
    """End device ID and all that runs on it, on every node; `bothy-server device list PERSON` shows ids."""
    try:
        wanted = DeviceId(parse_id(device_id))
    except ValueError:
        raise click.BadParameter("an id is needed; `bothy-server device list PERSON` shows them") from None
    revoked = with_admin(lambda admin: admin.devices.revoke(wanted))
    click.echo(json.dumps(_listed(revoked)) if as_json else f"{revoked.name} ({revoked.id}) is revoked")


def _listed(device: KnownDevice) -> dict[str, str | None]:
    return {
        "device_id": str(device.id),
        "person_id": str(device.person_id),
        "name": device.name,
        "kind": device.kind,
        "added_by": device.added_by,
        "last_used_at": None if device.last_used_at is None else instant(device.last_used_at),
        "revoked_at": None if device.revoked_at is None else instant(device.revoked_at),
    }
