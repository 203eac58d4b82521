"""``bothy-server node``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any
from uuid import UUID

import click
import httpx2 as httpx

from bothy_server.cluster.adapters.http.drain import DRAIN_PATH
from bothy_server.cluster.domain.node import ListedNode
from bothy_server.commands.calls import as_json, fail, guarded, settings_in_force, with_admin
from bothy_server.identity.domain.tokens import DrainToken
from bothy_server.wiring import tokens_of_this_machine
from bothy_wire.ids import NodeId

_CONNECT_TIMEOUT_S = 5
"""To a process of this machine."""


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
        figures = f"{each.figures.controls} hosts, {each.figures.sides} sides, {each.figures.pairs} pairs"
        place = each.node.origin or "no public listener"
        click.echo(
            f"{each.node.id}  {each.node.role:<6}  {each.state:<8}  heard {each.silent_s:.0f} s ago  {figures}  {place}"
        )


def _listed_node(listed: ListedNode) -> dict[str, Any]:
    told = {"node_id": str(listed.node.id), "role": listed.node.role, "origin": listed.node.origin}
    times = {"started_at": listed.started_at.isoformat(), "silent_s": round(listed.silent_s, 1)}
    return {**told, "state": listed.state, "version": listed.node.version, **times, **asdict(listed.figures)}


@node.command("drain")
@click.argument("node_id", metavar="NODE", type=click.UUID, required=False)
@click.option("--self", "of_this_machine", is_flag=True, help="The node on this machine; follow it to its end.")
@as_json
def node_drain(node_id: UUID | None, of_this_machine: bool, as_json: bool) -> None:
    """Let a node leave in order: hosts, then sessions move to other nodes, then its process ends. No session ends.

    With --self the exit status is 0 when everything left in time, else 1.
    """
    if (node_id is None) is not of_this_machine:
        raise click.UsageError("name one NODE, or --self")
    if node_id is None:
        _drain_here(as_json)
        return
    named = NodeId(node_id)
    known = with_admin(lambda admin: admin.nodes.drain(named))
    if as_json:
        click.echo(json.dumps({"node_id": str(named), "state": "draining", "silent_s": round(known.silent_s, 1)}))
    else:
        click.echo(
            f"asked; it was heard {known.silent_s:.0f} s ago, and `bothy-server node list` tells what is left on it"
        )


def _drain_here(as_json: bool) -> None:
    last: dict[str, Any] = {"step": "none"}
    for last in _followed():
        if not as_json:
            click.echo(
                f"{last['step']}: {last['controls']} control connections, {last['sides']} sides,"
                f" {last['others']} other connections left"
            )
    drained = last["step"] == "over" and not (last["controls"] or last["sides"] or last["others"])
    if as_json:
        click.echo(json.dumps({**last, "drained": drained}))
    if not drained:
        fail("the node ended before everything had left; clients dial again by themselves")


def _followed() -> Iterator[dict[str, Any]]:
    """The lines that the node on this machine tells until its end."""
    settings = settings_in_force()
    server = settings.server
    token, _ = guarded(lambda: tokens_of_this_machine(settings)).mint(DrainToken())
    at = server.internal_listen
    patience = httpx.Timeout(_CONNECT_TIMEOUT_S, read=server.drain_timeout + server.stop_linger)
    try:
        url, proof = f"http://{at}{DRAIN_PATH}", {"Authorization": f"Bearer {token}"}
        with httpx.stream("POST", url, headers=proof, timeout=patience, trust_env=False) as answer:
            if answer.status_code == httpx.codes.FORBIDDEN:
                fail(f"the node at server.internal_listen ({at}) has another key store, or is on another machine")
            if answer.status_code != httpx.codes.OK:
                fail(f"the process at server.internal_listen ({at}) is a worker, or a node that does not serve yet")
            with suppress(httpx.TransportError):  # it died; the last line tells how far it was
                yield from map(json.loads, answer.iter_lines())
    except httpx.TransportError:
        fail(f"nothing answers at server.internal_listen ({at}): no node runs here, or it has other settings")
