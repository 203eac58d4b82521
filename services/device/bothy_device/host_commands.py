"""``bothy hosts``: the hosts of a person, and what owners and operators do about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from bothy_device.asking import ask, json_option, known_login, make_sure, server_option
from bothy_device.right_commands import grant, grants, owners, revoke_grant

if TYPE_CHECKING:
    from bothy_device.host_management import PairingCode
    from bothy_device.rest import Host, Rest


@click.group(cls=click.Group, invoke_without_command=True)
@server_option
@json_option
@click.pass_context
def hosts(context: click.Context, server: str | None, as_json: bool) -> None:
    """List your hosts."""
    if context.invoked_subcommand is None:
        from bothy_device.tables import print_hosts

        print_hosts(ask(server, lambda rest: rest.hosts()), as_json=as_json)


@hosts.command()
@click.argument("host")
@click.argument("fingerprint")
@server_option
def trust(host: str, fingerprint: str, server: str | None) -> None:
    """Accept a host's key.

    FINGERPRINT is what its owner told you.
    """
    from bothy_wire.printable import printable

    found, _ = _with_key(host, fingerprint, server, confirmed=False)
    click.echo(f"{printable(found.name)} is trusted with the key {fingerprint}")
    if found.fingerprint not in (None, fingerprint):
        shown = printable(str(found.fingerprint))
        click.echo(f"bothy: note: the relay shows another key for it now: {shown}", err=True)


@hosts.command()
@click.argument("host")
@click.argument("fingerprint")
@server_option
def confirm(host: str, fingerprint: str, server: str | None) -> None:
    """Let a freshly paired HOST in, as its owner.

    FINGERPRINT is the one that `bothy-host pair` showed on the machine.
    """
    from bothy_wire.printable import printable

    found, state = _with_key(host, fingerprint, server, confirmed=True)
    click.echo(f"{printable(found.name)} is {printable(state)}, and trusted with the key {fingerprint}")


def _with_key(host: str, fingerprint: str, server: str | None, *, confirmed: bool) -> tuple[Host, str]:
    """Pin the key that a person named for the host that they named; the host, and its state after that.

    Where the host is to be confirmed, the relay has agreed to the key before.
    """
    from bothy_device.choice import find_host
    from bothy_device.known_hosts import KnownHosts, Pin, checked_fingerprint
    from bothy_device.state import home

    accepted = checked_fingerprint(fingerprint)

    async def find(rest: Rest) -> tuple[Host, str]:
        found = find_host(await rest.hosts(), host)
        return found, (await rest.confirm(found.host_id, accepted)).state if confirmed else found.state

    found, state = ask(server, find)
    KnownHosts(home() / "known_hosts").trust(Pin(known_login(server).server, found.host_id, accepted, found.name))
    return found, state


@hosts.command()
@click.argument("name")
@click.option("--owner", metavar="PERSON", help="Who owns it, by name or id; you, when left out.")
@server_option
@json_option
def add(name: str, owner: str | None, server: str | None, as_json: bool) -> None:
    """Add a host and print its pairing code, as an operator."""
    from bothy_device import host_management

    async def go(rest: Rest) -> tuple[Host, PairingCode]:
        made = await host_management.add(rest, name, owner)
        return made, await host_management.pairing_code(rest, made)

    _show_code(*ask(server, go), server, as_json=as_json)


@hosts.command()
@click.argument("host")
@click.option("--yes", is_flag=True, help="Also for a host that is paired, without a question.")
@server_option
@json_option
def code(host: str, yes: bool, server: str | None, as_json: bool) -> None:
    """Print a new pairing code for HOST.

    A host that is paired loses its key and its sessions by it, at once.
    """
    from bothy_device import host_management
    from bothy_wire.printable import printable

    async def go(rest: Rest) -> tuple[Host, PairingCode]:
        found = await host_management.named(rest, host)
        if not yes and (found.fingerprint is not None or found.state != "pending"):
            warning = f"a new code makes the key of {printable(found.name)} void and ends its sessions, at once"
            make_sure(warning, "Go on?")
        return found, await host_management.pairing_code(rest, found)

    _show_code(*ask(server, go), server, as_json=as_json)


def _show_code(host: Host, made: PairingCode, server: str | None, *, as_json: bool) -> None:
    from bothy_device.tables import print_json
    from bothy_wire.printable import printable

    if as_json:
        print_json({"host_id": host.host_id, "name": host.name, "code": made.code, "expires_in_s": made.expires_in_s})
        return
    minutes = round(made.expires_in_s / 60)
    click.echo(f"pairing code for {printable(host.name)}, to be used once within {minutes} min:\n")
    click.echo(f"    {made.code}\n")
    click.echo(f"On the machine: bothy-host pair {known_login(server).server}")


@hosts.command()
@click.argument("host")
@server_option
@json_option
def disable(host: str, server: str | None, as_json: bool) -> None:
    """End the sessions and connections of HOST and open no more, until it is enabled."""
    _set_state(host, "disabled", server, as_json=as_json)


@hosts.command()
@click.argument("host")
@server_option
@json_option
def enable(host: str, server: str | None, as_json: bool) -> None:
    """Let a HOST that was disabled dial in again."""
    _set_state(host, "active", server, as_json=as_json)


@hosts.command()
@click.argument("host")
@click.option("--yes", is_flag=True, help="Without a question.")
@server_option
@json_option
def retire(host: str, yes: bool, server: str | None, as_json: bool) -> None:
    """End HOST for good; its name is free again."""
    _set_state(host, "retired", server, as_json=as_json, yes=yes)


def _set_state(
    host: str, state: Literal["active", "disabled", "retired"], server: str | None, *, as_json: bool, yes: bool = False
) -> None:
    from bothy_device import host_management
    from bothy_device.tables import print_json
    from bothy_wire.printable import printable

    async def go(rest: Rest) -> Host:
        found = await host_management.named(rest, host)
        if state == "retired" and not yes:
            make_sure(f"{printable(found.name)} ends for good, and its sessions with it", "Retire it?")
        return await host_management.set_state(rest, found, state)

    now = ask(server, go)
    if as_json:
        print_json(now)
    else:
        click.echo(f"{printable(now.name)} is {printable(now.state)}")


@hosts.command()
@click.argument("host")
@click.argument("name")
@server_option
@json_option
def rename(host: str, name: str, server: str | None, as_json: bool) -> None:
    """Call HOST by another NAME."""
    from bothy_device import host_management
    from bothy_device.tables import print_json
    from bothy_wire.printable import printable

    async def go(rest: Rest) -> tuple[Host, Host]:
        found = await host_management.named(rest, host)
        return found, await host_management.rename(rest, found, name)

    before, now = ask(server, go)
    if as_json:
        print_json(now)
    else:
        click.echo(f"{printable(before.name)} is called {printable(now.name)}")


for command in (owners, grants, grant, revoke_grant):
    hosts.add_command(command)
