"""``bothy-server host``."""

from __future__ import annotations

import json

import click

from bothy_server import wiring
from bothy_server.commands import host_rights
from bothy_server.commands.calls import as_json, instant, make_sure, with_admin
from bothy_server.hosts.domain.host import DUPLICATE_CONNECTION, Host, HostState


@click.group()
def host() -> None:
    """Hosts."""


for command in host_rights.COMMANDS:
    host.add_command(command)


@host.command("add")
@click.argument("name")
@click.option("--owner", required=True, metavar="PERSON", help="Who owns the host and may open terminals on it.")
@as_json
def host_add(name: str, owner: str, as_json: bool) -> None:
    """Add a host and print its pairing code."""

    async def add(admin: wiring.Admin) -> dict[str, str]:
        made = await admin.pairing.create(name, owner, None)
        code, _ = await admin.pairing.issue_code(made.id, None)
        return {"host_id": str(made.id), "code": code}

    _show_code(name, with_admin(add), as_json)


@host.command("code")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Also for a host that is paired, without a question.")
@as_json
def host_code(name: str, yes: bool, as_json: bool) -> None:
    """Print a new pairing code. A host that is paired loses its keys and its sessions now."""

    async def issue(admin: wiring.Admin) -> dict[str, str]:
        found = await admin.pairing.find(name)
        if not yes and (found.paired or found.state is not HostState.PENDING):
            make_sure(f"a new code makes the key of {name} void and ends its sessions, at once", "Go on?")
        code, _ = await admin.pairing.issue_code(found.id, None)
        return {"host_id": str(found.id), "code": code}

    _show_code(name, with_admin(issue), as_json)


def _show_code(name: str, made: dict[str, str], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(made))
    else:
        click.echo(f"pairing code for {name}, to be used once:\n\n    {made['code']}\n")
        click.echo("On the machine: bothy-host pair ADDRESS")


@host.command("list")
@as_json
def host_list(as_json: bool) -> None:
    """List hosts that are not retired: state, when last seen, and what to do where something has to be done."""
    found = with_admin(lambda admin: admin.pairing.list())
    if as_json:
        click.echo(json.dumps({"hosts": [_listed_host(each) for each in found]}))
        return
    for each in found:
        seen = f"last seen {instant(each.last_seen_at)}" if each.last_seen_at else "never seen"
        click.echo(f"{each.name}  {each.state.value}  {seen}{_advice(each)}")


def _listed_host(host: Host) -> dict[str, str | None]:
    seen = None if host.last_seen_at is None else instant(host.last_seen_at)
    told = {"host_id": str(host.id), "name": host.name, "state": host.state.value}
    return {**told, "disabled_reason": host.disabled_reason, "last_seen_at": seen}


def _advice(host: Host) -> str:
    match host.state:
        case HostState.DISABLED if host.disabled_reason == DUPLICATE_CONNECTION:
            return (
                "\n    two machines hold its key: stop the copy, then pair it again with"
                f" `bothy-server host code {host.name}`"
            )
        case HostState.DISABLED:
            return f"\n    `bothy-server host enable {host.name}` lets it dial in again"
        case HostState.PENDING if host.paired:
            return "\n    waits for its owner, who confirms the fingerprint that the machine printed"
        case HostState.PENDING:
            return f"\n    not paired: `bothy-server host code {host.name}` makes a pairing code"
        case _:
            return ""


@host.command("disable")
@click.argument("name")
@as_json
def host_disable(name: str, as_json: bool) -> None:
    """End a host's sessions and connections and open no more, until it is enabled."""
    _set_state(name, HostState.DISABLED, as_json)


@host.command("enable")
@click.argument("name")
@as_json
def host_enable(name: str, as_json: bool) -> None:
    """Let a disabled host dial in again."""
    _set_state(name, HostState.ACTIVE, as_json)


@host.command("retire")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Without a question.")
@as_json
def host_retire(name: str, yes: bool, as_json: bool) -> None:
    """End a host for good; its name is free again."""
    _set_state(name, HostState.RETIRED, as_json, yes=yes)


@host.command("rename")
@click.argument("name")
@click.argument("new_name")
@as_json
def host_rename(name: str, new_name: str, as_json: bool) -> None:
    """Call a host by another name."""

    async def rename(admin: wiring.Admin) -> dict[str, str]:
        found = await admin.pairing.find(name)
        await admin.naming.rename(found.id, new_name, None)
        return {"host_id": str(found.id), "name": new_name}

    made = with_admin(rename)
    click.echo(json.dumps(made) if as_json else f"{name} is called {new_name}")


def _set_state(name: str, state: HostState, as_json: bool, *, yes: bool = False) -> None:
    async def set_state(admin: wiring.Admin) -> dict[str, str]:
        found = await admin.pairing.find(name)
        if state is HostState.RETIRED and not yes:
            make_sure(f"{name} ends for good, and its sessions with it", "Retire it?")
        await admin.transitions.set_state(found.id, state, None)
        return {"host_id": str(found.id), "state": state.value}

    made = with_admin(set_state)
    click.echo(json.dumps(made) if as_json else f"{name} is {state.value}")
