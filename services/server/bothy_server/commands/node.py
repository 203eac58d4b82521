"""``bothy-server node``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from bothy_server.cluster.domain.node import ListedNode
from bothy_server.commands.calls import as_json, with_admin


@click.group()
def node() -> None:
    """Processes that share the database."""


@node.command("list")
@as_json
def node_list(as_json: bool) -> None:
    """List nodes and workers with what they last said of themselves."""
    found = with_admin(lambda admin: admin.nodes.list())
    if as_json:
        click.echo(json.dumps({"nodes": [_listed_node(each) for each in found]}))
        return
    for each in found:
        figures = f"{each.figures.sides} sides, {each.figures.pairs} pairs"
        place = each.node.origin or "no public listener"
        click.echo(
            f"{each.node.id}  {each.node.role:<6}  {each.state:<7}  heard {each.silent_s:.0f} s ago  {figures}  {place}"
        )


def _listed_node(listed: ListedNode) -> dict[str, Any]:
    told = {"node_id": str(listed.node.id), "role": listed.node.role, "origin": listed.node.origin}
    times = {"started_at": listed.started_at.isoformat(), "silent_s": round(listed.silent_s, 1)}
    return {**told, "state": listed.state, "version": listed.node.version, **times, **asdict(listed.figures)}
