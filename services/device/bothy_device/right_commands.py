"""``bothy hosts owners``, ``grants``, ``grant``, ``revoke-grant``: who may do what on a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bothy_device.asking import ask, json_option, server_option
from bothy_device.failure import Failure

if TYPE_CHECKING:
    from bothy_device.host_management import Grant, Owner
    from bothy_device.rest import Host, Rest


@click.command()
@click.argument("host")
@click.option("--add", metavar="PERSON", help="Make them an owner too, as an owner; a name or an id.")
@click.option("--remove", metavar="PERSON", help="Take the host from them; their sessions end.")
@server_option
@json_option
def owners(host: str, add: str | None, remove: str | None, server: str | None, as_json: bool) -> None:
    """List who owns HOST, or change it."""
    from bothy_device import host_management
    from bothy_device.tables import print_owners

    async def go(rest: Rest) -> list[Owner]:
        found = await host_management.named(rest, host)
        if add is not None:
            await host_management.add_owner(rest, found, add)
        if remove is not None:
            await host_management.remove_owner(rest, found, remove)
        try:
            return await host_management.owners(rest, found)
        except Failure as failure:
            if remove is not None and failure.code == "host_unknown":
                return []  # they took it from themselves
            raise

    print_owners(ask(server, go), as_json=as_json)


@click.command()
@click.argument("host")
@server_option
@json_option
def grants(host: str, server: str | None, as_json: bool) -> None:
    """List who may open terminals on HOST without owning it."""
    from bothy_device import host_management
    from bothy_device.tables import print_grants

    async def go(rest: Rest) -> list[Grant]:
        return await host_management.grants(rest, await host_management.named(rest, host))

    print_grants(ask(server, go), as_json=as_json)


@click.command()
@click.argument("host")
@click.argument("person")
@click.option("--user", required=True, metavar="NAME", help="The account on the host.")
@click.option(
    "--until", metavar="WHEN", help="A date, an instant, or a time from now as 8h or 7d; for good when left out."
)
@server_option
@json_option
def grant(host: str, person: str, user: str, until: str | None, server: str | None, as_json: bool) -> None:
    """Let PERSON open terminals on HOST as one user, as an owner.

    PERSON is a name or an id. Given again, it has another end.
    """
    from datetime import UTC, datetime

    from bothy_device import host_management
    from bothy_device.tables import print_json
    from bothy_device.until import instant, shown
    from bothy_wire.printable import printable

    end = None if until is None else instant(until, datetime.now(UTC))

    async def go(rest: Rest) -> tuple[Host, Grant]:
        found = await host_management.named(rest, host)
        return found, await host_management.grant(rest, found, person, user, end)

    found, made = ask(server, go)
    if as_json:
        print_json(made)
    else:
        who, account = printable(made.person_name), printable(made.session_user)
        click.echo(f"{who} may open terminals on {printable(found.name)} as {account}, {shown(made.expires_at)}")


@click.command("revoke-grant")
@click.argument("host")
@click.argument("person")
@click.option("--user", metavar="NAME", help="This account only; all of theirs when left out.")
@server_option
@json_option
def revoke_grant(host: str, person: str, user: str | None, server: str | None, as_json: bool) -> None:
    """Take grants on HOST from PERSON; the sessions that they carried end.

    --json prints those that are left.
    """
    from bothy_device import host_management
    from bothy_device.tables import print_grants
    from bothy_wire.printable import printable

    async def go(rest: Rest) -> tuple[Host, list[Grant]]:
        found = await host_management.named(rest, host)
        await host_management.revoke_grant(rest, found, person, user)
        return found, await host_management.grants(rest, found)

    found, left = ask(server, go)
    if as_json:
        print_grants(left, as_json=True)
        return
    account = "any account" if user is None else printable(user)
    click.echo(f"{printable(person)} holds no grant on {printable(found.name)} for {account} any more")
