"""``bothy devices``: the devices of a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bothy_device.asking import ask, json_option, known_login, make_sure, server_option
from bothy_device.failure import Failure

if TYPE_CHECKING:
    from bothy_device.devices import Device
    from bothy_device.rest import Rest


@click.group(cls=click.Group, invoke_without_command=True)
@server_option
@json_option
@click.pass_context
def devices(context: click.Context, server: str | None, as_json: bool) -> None:
    """List your devices."""
    if context.invoked_subcommand is None:
        from bothy_device.devices import list_devices
        from bothy_device.tables import print_devices

        print_devices(ask(server, list_devices), known_login(server).device_id, as_json=as_json)


@devices.command()
@server_option
def invite(server: str | None) -> None:
    """Print a one-time code for one more device of yours."""
    from bothy_device.devices import invite as make

    made = ask(server, make)
    if made.invite is None or made.expires_in_s is None:
        raise Failure("the relay has shown this code before, and the answer was lost; run the command again")
    click.echo(f"invite for {known_login(server).person_name}, to be used once within {_words(made.expires_in_s)}:\n")
    click.echo(f"    {made.invite}\n")
    click.echo(f"On the other machine: bothy login {known_login(server).server}")


@devices.command()
@click.argument("code")
@server_option
def approve(code: str, server: str | None) -> None:
    """Let in the device that shows CODE, as one of yours."""
    from bothy_device import device_login

    click.echo(ask(server, lambda rest: device_login.approve(rest, code, device_login.ask)))


@devices.command()
@click.argument("device")
@click.option("--yes", is_flag=True, help="Also when it is the one you sit at, without a question.")
@server_option
def revoke(device: str, yes: bool, server: str | None) -> None:
    """End DEVICE and all that runs on it, at once.

    DEVICE is a name or the beginning of an id.
    """
    from bothy_device.devices import find_device, list_devices
    from bothy_device.devices import revoke as end
    from bothy_wire.printable import printable

    own = known_login(server).device_id

    async def go(rest: Rest) -> Device:
        found = find_device(await list_devices(rest), device)
        if found.device_id == own and not yes:
            warning = "is the device you sit at: what runs on it ends, and it gets in again only as a new one"
            make_sure(f"{printable(found.name)} {warning}", "Revoke it?")
        return await end(rest, found.device_id)

    revoked = ask(server, go)
    click.echo(f"{printable(revoked.name)} ({revoked.device_id}) is revoked; what ran on it has ended")
    if revoked.device_id == own:
        click.echo("bothy: note: that was this device; bothy logout forgets its keys", err=True)


def _words(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes or not hours)
    return " ".join(parts)
