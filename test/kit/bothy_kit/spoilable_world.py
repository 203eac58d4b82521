"""The whole of bothy as real processes, made to be broken: every part of it has a handle that a test may pull.

Like ``demo_world``, with a PostgreSQL and an edge that stop and start again, and with a network before the device and one
before the host. Nothing outlives the block.
"""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from bothy_kit.demo_world import HOST, Node, Say, get
from bothy_kit.network import Network, network
from bothy_kit.nginx import Edge, running_edge
from bothy_kit.postgres import OwnServer, own_server
from bothy_kit.processes import reserved_port, scratch
from bothy_kit.programs import Program, ask, command, running, without_ours

NODES = ("api-1", "api-2")


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
    worker: Program
    host: Program
    database: str
    """The address of the database."""
    device: Mapping[str, str]
    """The environment in which ``bothy`` is the first device."""
    _server: Mapping[str, str]
    _terms: Terms

    def check(self) -> None:
        """Raise :class:`ProgramError` when one of the programs has ended by itself."""
        for each in (*self.nodes.values(), self.worker, self.host):
            each.check()

    def wait_ready(self, node: Node) -> None:
        """Until a node that was started serves. Raises :class:`ProgramError`."""
        self.nodes[node].wait(partial(ready, node))

    def wait_online(self) -> None:
        """Until every node takes the host for connected. Raises :class:`ProgramError`."""
        for node, program in self.nodes.items():
            program.wait(partial(_knows_host, node))

    def another_device(self, name: str) -> dict[str, str]:
        """Robin logs in on one more device, straight at the edge, and trusts the host; its environment."""
        device = _log_in(self.folder / name, self.edge.url, name, self.invite(), self._terms.device)
        (host,) = json.loads(ask("bothy", ["hosts", "--json"], device))
        ask("bothy", ["hosts", "trust", host["host_id"], host["fingerprint"]], device)
        return device

    def invite(self) -> str:
        """A code for one more device of Robin."""
        return str(self._bothy_server("person", "invite", "Robin")["invite"])

    def add_host(self, name: str) -> str:
        """One more host of Robin; its pairing code."""
        return str(self._bothy_server("host", "add", name, "--owner", "Robin")["code"])

    def _bothy_server(self, *words: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(ask("bothy-server", [*words, "--json"], self._server))
        return said

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
        ports = [stack.enter_context(reserved_port()) for _ in range(2 * len(NODES) + 2)]
        nodes = [Node(name, *ports[2 * index : 2 * index + 2]) for index, name in enumerate((*NODES, "worker"))]
        say("edge and networks")
        edge = stack.enter_context(
            running_edge([(each.name, "127.0.0.1", each.port) for each in nodes[:-1]], log=folder / "edge.log")
        )
        target = ("127.0.0.1", urlsplit(edge.url).port or 0)
        device_network, host_network = (stack.enter_context(network(target)) for _ in range(2))

        origins = f"{edge.url},{device_network.url},{host_network.url}"
        server = _server_environment(database, folder / "keys", origins) | dict(terms.server)
        say("tables and signing key")
        ask("bothy-server", ["migrate"], server)
        ask("bothy-server", ["keys", "init"], server)
        say("nodes and worker")
        programs = {each: stack.enter_context(running(each.name, *_serving(each, server), folder)) for each in nodes}
        for node, program in programs.items():
            program.wait(partial(ready, node))

        say("a person, their device and a host")
        robin = json.loads(ask("bothy-server", ["person", "add", "Robin", "--operator", "--json"], server))
        device = _log_in(folder / "device", device_network.url, "laptop", robin["invite"], terms.device)
        added = json.loads(ask("bothy-server", ["host", "add", HOST, "--owner", "Robin", "--json"], server))
        config = _write_host_settings(folder, host_network.url, terms.host)
        words = ["--config", str(config)]
        ask("bothy-host", [*words, "pair", host_network.url], without_ours({}), added["code"])
        host = stack.enter_context(
            running("bothy-host", [command("bothy-host"), *words, "run"], without_ours({}), folder)
        )
        worker = programs.pop(nodes[-1])
        world = SpoilableWorld(
            folder=folder,
            postgres=postgres,
            edge=edge,
            device_network=device_network,
            host_network=host_network,
            nodes=programs,
            worker=worker,
            host=host,
            database=database,
            device=device,
            _server=server,
            _terms=terms,
        )
        world.wait_online()
        yield world


def ready(node: Node) -> bool:
    """Whether it says so."""
    try:
        return get(node.internal_port, "/readyz")[0] == 200
    except (OSError, HTTPException):
        return False


def _knows_host(node: Node) -> bool:
    return node.gauge("bothy_hosts_connected") > 0


def _serving(node: Node, server: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    own = {
        "BOTHY_SERVER__ROLE": "worker" if node.name == "worker" else "api",
        "BOTHY_SERVER__LISTEN": f"127.0.0.1:{node.port}",
        "BOTHY_SERVER__INTERNAL_LISTEN": f"127.0.0.1:{node.internal_port}",
    }
    return [command("bothy-server"), "serve"], {**server, **own}


def _server_environment(database: str, keys: Path, origins: str) -> dict[str, str]:
    return without_ours(
        {
            "BOTHY_DATABASE__URL": database,
            "BOTHY_SECRETS__SIGNING_KEY_DIR": str(keys),
            "BOTHY_CLUSTER__MODE": "multi",
            "BOTHY_HOSTS__PAIRING": "auto",
            "BOTHY_SERVER__PUBLIC_ORIGINS": origins,
        }
    )


def _log_in(home: Path, url: str, name: str, invite: str, settings: str) -> dict[str, str]:
    environment = without_ours({"BOTHY_HOME": str(home)})
    ask("bothy", ["login", url, "--name", name], environment, invite)
    (home / "config.toml").write_text(settings)
    return environment


def _write_host_settings(folder: Path, url: str, settings: str) -> Path:
    """The shell runs as whoever runs this. A JSON string is a TOML string too."""
    user = pwd.getpwuid(os.geteuid())
    lines = (
        f"server = {json.dumps(url)}",
        f"state_dir = {json.dumps(str(folder / 'host'))}",
        f"allow_root = {json.dumps(user.pw_uid == 0)}",
        settings,
        "[profile.shell]",
        f"users = [{json.dumps(user.pw_name)}]",
    )
    path = folder / "host.toml"
    path.write_text("\n".join(lines) + "\n")
    return path
