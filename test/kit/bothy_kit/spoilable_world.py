"""The whole of bothy as real processes, made to be broken: every part of it has a handle that a test may pull.

Like ``demo_world``, with a PostgreSQL and an edge that stop and start again, and with a network before the device and one
before the host. Nothing outlives the block.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from bothy_kit.network import Network, network
from bothy_kit.nginx import Edge, running_edge
from bothy_kit.postgres import OwnServer, own_server
from bothy_kit.processes import scratch
from bothy_kit.programs import Program, ask
from bothy_kit.world_parts import (
    HOST,
    Node,
    Say,
    administer,
    log_in,
    reserved_nodes,
    running_host,
    running_nodes,
    server_environment,
    wait_for_host,
)


@dataclass(frozen=True, slots=True)
class Terms:
    """Settings that differ from the defaults: of the nodes as environment, of host and device as TOML."""

    server: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    device: str = ""


@dataclass(frozen=True, slots=True)
class SpoilableWorld:
    """What runs. Whoever breaks a part also mends it."""

    folder: Path
    postgres: OwnServer
    edge: Edge
    device_network: Network
    host_network: Network
    nodes: Mapping[Node, Program]
    host: Program
    database: str
    """The address of the database."""
    device: Mapping[str, str]
    """The environment in which ``bothy`` is the first device."""
    server: Mapping[str, str]
    """The environment of ``bothy-server``: its settings."""
    terms: Terms

    def check(self) -> None:
        """Raise :class:`ProgramError` when one of the programs has ended by itself."""
        for each in (*self.nodes.values(), self.host):
            each.check()

    def wait_ready(self, node: Node) -> None:
        """Until a node that was started serves. Raises :class:`ProgramError`."""
        self.nodes[node].wait(node.ready)

    def wait_online(self) -> None:
        """Until every node would open a session on the host. Raises :class:`ProgramError`."""
        wait_for_host(list(self.nodes), self.host)

    def another_device(self, name: str) -> dict[str, str]:
        """Robin logs in on one more device, straight at the edge, and trusts the host; its environment."""
        device = _log_in(self.folder / name, self.edge.url, name, self.invite(), self.terms)
        (host,) = json.loads(ask("bothy", ["hosts", "--json"], device))
        ask("bothy", ["hosts", "trust", host["host_id"], host["fingerprint"]], device)
        return device

    def invite(self) -> str:
        """A code for one more device of Robin."""
        return str(administer(self.server, "person", "invite", "Robin")["invite"])

    def add_host(self, name: str) -> str:
        """One more host of Robin; its pairing code."""
        return str(administer(self.server, "host", "add", name, "--owner", "Robin")["code"])

    def sessions(self) -> dict[str, tuple[str, str | None]]:
        """State and reason of the end of every session, by id, as the rows have it."""
        with psycopg.connect(self.database) as connection:
            rows = connection.execute("SELECT id, state, close_reason FROM terminal_sessions").fetchall()
        return {str(session_id): (state, reason) for session_id, state, reason in rows}


@contextmanager
def spoilable_world(say: Say, terms: Terms) -> Iterator[SpoilableWorld]:
    """Start everything, telling ``say`` each step; stop it in reverse order at the end. Raises :class:`ProgramError`."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch("bothy-chaos"))
        say("PostgreSQL")
        postgres = stack.enter_context(own_server())
        database = postgres.postgres.url(postgres.postgres.create_database())
        nodes, worker = stack.enter_context(reserved_nodes())
        say("edge and networks")
        edge = stack.enter_context(
            running_edge([(each.name, "127.0.0.1", each.port) for each in nodes], log=folder / "edge.log")
        )
        target = ("127.0.0.1", urlsplit(edge.url).port or 0)
        device_network, host_network = (stack.enter_context(network(target)) for _ in range(2))

        server = server_environment(database, folder / "keys", edge.url, device_network.url, host_network.url)
        server |= terms.server
        say("tables and signing key")
        ask("bothy-server", ["migrate"], server)
        ask("bothy-server", ["keys", "init"], server)
        *programs, _ = stack.enter_context(running_nodes((*nodes, worker), server, folder, say))

        say("a person, their device and a host")
        robin = administer(server, "person", "add", "Robin", "--operator")
        device = _log_in(folder / "device", device_network.url, "laptop", robin["invite"], terms)
        added = administer(server, "host", "add", HOST, "--owner", "Robin")
        host = stack.enter_context(running_host(folder, host_network.url, added["code"], terms.host))
        world = SpoilableWorld(
            folder=folder,
            postgres=postgres,
            edge=edge,
            device_network=device_network,
            host_network=host_network,
            nodes=dict(zip(nodes, programs, strict=True)),
            host=host,
            database=database,
            device=device,
            server=server,
            terms=terms,
        )
        world.wait_online()
        yield world


def _log_in(home: Path, url: str, name: str, invite: str, terms: Terms) -> dict[str, str]:
    device = log_in(home, url, name, invite)
    (home / "config.toml").write_text(terms.device)
    return device
