"""``bothy-server host owners``, ``grants``, ``grant``, ``revoke-grant``: who may do what on a host.

Whoever holds the database and the keys of the server may decide this, also for a host whose owners are gone.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click

from bothy_server import wiring
from bothy_server.commands.calls import as_json, instant, with_admin
from bothy_server.identity.domain.rights import Grant, Owner

_INSTANTS = ["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]


@click.command("owners")
@click.argument("name")
@click.option("--add", metavar="PERSON", help="Make them an owner too; a name or an id.")
@click.option("--remove", metavar="PERSON", help="Take the host from them; their sessions end.")
@as_json
def host_owners(name: str, add: str | None, remove: str | None, as_json: bool) -> None:
    """List who owns a host, or change it."""

    async def go(admin: wiring.Admin) -> list[Owner]:
        host = await admin.pairing.find(name)
        if add is not None:
            await admin.grants.add_owner(None, host.id, add)
        if remove is not None:
            await admin.grants.remove_owner(None, host.id, remove)
        return await admin.grants.owners(None, host.id)

    found = with_admin(go)
    if as_json:
        click.echo(json.dumps({"owners": [_owner(each) for each in found]}))
        return
    for each in found:
        click.echo(f"{each.person_name}  since {instant(each.since)}{'' if each.usable else '  disabled'}")


@click.command("grants")
@click.argument("name")
@as_json
def host_grants(name: str, as_json: bool) -> None:
    """List who may open terminals on a host without owning it."""
    _show(with_admin(lambda admin: _grants(admin, name)), as_json)


@click.command("grant")
@click.argument("name")
@click.argument("person")
@click.option("--user", required=True, metavar="NAME", help="The account on the host.")
@click.option(
    "--until", type=click.DateTime(_INSTANTS), help="When it ends, in this machine's time; for good when left out."
)
@as_json
def host_grant(name: str, person: str, user: str, until: datetime | None, as_json: bool) -> None:
    """Let a person open terminals on a host as one user.

    PERSON is a name or an id. Given again, it has another end.
    """
    end = None if until is None else until.astimezone(UTC)

    async def go(admin: wiring.Admin) -> Grant:
        return await admin.grants.grant(None, (await admin.pairing.find(name)).id, person, user, end)

    made = with_admin(go)
    click.echo(json.dumps(_grant(made)) if as_json else f"{name}: {_words(made)}")


@click.command("revoke-grant")
@click.argument("name")
@click.argument("person")
@click.option("--user", metavar="NAME", help="This account only; all of theirs when left out.")
@as_json
def host_revoke_grant(name: str, person: str, user: str | None, as_json: bool) -> None:
    """Take grants on a host from a person, and list those that are left; the sessions that they carried end."""

    async def go(admin: wiring.Admin) -> list[Grant]:
        await admin.grants.revoke(None, (await admin.pairing.find(name)).id, person, user)
        return await _grants(admin, name)

    _show(with_admin(go), as_json)


COMMANDS = (host_owners, host_grants, host_grant, host_revoke_grant)


async def _grants(admin: wiring.Admin, name: str) -> list[Grant]:
    return await admin.grants.grants(None, (await admin.pairing.find(name)).id)


def _show(found: list[Grant], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"grants": [_grant(each) for each in found]}))
        return
    for each in found:
        click.echo(_words(each))


def _words(grant: Grant) -> str:
    end = "" if grant.expires_at is None else f" until {instant(grant.expires_at)}"
    return f"{grant.person_name} as {grant.session_user}{end}"


def _owner(owner: Owner) -> dict[str, str | bool]:
    told = {"person_id": str(owner.person_id), "person_name": owner.person_name, "since": instant(owner.since)}
    return {**told, "disabled": not owner.usable}


def _grant(grant: Grant) -> dict[str, str | None]:
    told = {"person_id": str(grant.person_id), "person_name": grant.person_name, "session_user": grant.session_user}
    return {**told, "expires_at": None if grant.expires_at is None else instant(grant.expires_at)}
