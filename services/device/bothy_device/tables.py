"""Lists for a person (a table), for a pipe (tab-separated, no heading) and for a program (JSON)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from bothy_device.devices import Device
from bothy_device.host_management import Grant, Owner
from bothy_device.rest import Host, SessionRow
from bothy_wire.printable import printable


def print_hosts(hosts: Sequence[Host], *, as_json: bool) -> None:
    """``bothy hosts``."""
    if as_json:
        return print_json(hosts)
    rows = [
        (
            each.name,
            each.state,
            each.presence,
            "; ".join(f"{name}: {', '.join(u)}" for name, u in each.profiles.items()),
        )
        for each in sorted(hosts, key=lambda each: each.name)
    ]
    return _print_rows(("NAME", "STATE", "PRESENCE", "PROFILES"), rows, nothing="you have no right on any host yet")


def print_sessions(sessions: Sequence[SessionRow], *, as_json: bool) -> None:
    """``bothy sessions``."""
    if as_json:
        return print_json(sessions)
    rows = [
        (
            str(each.session_id),
            each.host_name,
            f"{each.person_name} on {each.device_name}",
            f"{each.profile} as {each.session_user}",
            each.state if each.close_reason is None else f"{each.state}: {each.close_reason}",
            each.opened_at,
        )
        for each in sorted(sessions, key=lambda each: each.session_id)
    ]
    return _print_rows(("SESSION", "HOST", "PERSON", "PROFILE", "STATE", "OPENED"), rows, nothing="no sessions")


def print_devices(devices: Sequence[Device], own: UUID, *, as_json: bool) -> None:
    """``bothy devices``; ``own`` is the one that asks."""
    if as_json:
        return print_json(devices)
    rows = [
        (
            str(each.device_id),
            each.name,
            f"{each.kind} by {each.added_by}",
            each.last_used_at or "never",
            f"revoked {each.revoked_at}" if each.revoked_at else "this one" if each.device_id == own else "",
        )
        for each in devices
    ]
    return _print_rows(("DEVICE", "NAME", "KIND", "LAST USED", "STATE"), rows, nothing="no devices")


def print_owners(owners: Sequence[Owner], *, as_json: bool) -> None:
    """``bothy hosts owners``."""
    if as_json:
        return print_json(owners)
    rows = [(str(each.person_id), each.person_name, each.since, "disabled" if each.disabled else "") for each in owners]
    return _print_rows(("ID", "PERSON", "SINCE", "STATE"), rows, nothing="you own it no longer")


def print_grants(grants: Sequence[Grant], *, as_json: bool) -> None:
    """``bothy hosts grants``."""
    if as_json:
        return print_json(grants)
    rows = [(str(each.person_id), each.person_name, each.session_user, each.expires_at or "") for each in grants]
    return _print_rows(("ID", "PERSON", "USER", "UNTIL"), rows, nothing="nobody but its owners")


def print_json(items: Any) -> None:
    """For a program."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(items), indent=2).decode() + "\n")


def _print_rows(heading: Sequence[str], rows: Sequence[Sequence[str]], *, nothing: str) -> None:
    cleaned = [[printable(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        sys.stdout.writelines("\t".join(row) + "\n" for row in cleaned)
        return
    if not cleaned:
        sys.stdout.write(nothing + "\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(heading):
        table.add_column(name, no_wrap=number == 0)
    for row in cleaned:
        table.add_row(*map(Text, row))
    Console().print(table)
