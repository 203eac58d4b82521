"""The whole of bothy on this machine as real processes: what ``make demo`` runs and its check looks at.

One folder, one PostgreSQL, two api nodes, a worker, the example edge, a paired host service with this machine's shell and
a device that is logged in. Nothing outlives the block, and nothing is left when its program is killed.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bothy_kit.nginx import Mode, edge
from bothy_kit.postgres import Postgres, running_postgres
from bothy_kit.processes import scratch
from bothy_kit.programs import Program, ask
from bothy_kit.world_parts import (
    DATABASE,
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
class World:
    """What runs."""

    url: str
    page: str
    """The same address by name, as a browser needs it: passkeys belong to a name, and a number is none."""
    folder: Path
    postgres: Postgres
    nodes: tuple[Node, ...]
    worker: Node
    server: Mapping[str, str]
    """The environment of ``bothy-server``: its settings."""
    device: Mapping[str, str]
    """The environment in which ``bothy`` is the demo's device."""
    programs: tuple[Program, ...]
    """The nodes, the worker and the host service."""

    @property
    def database(self) -> str:
        """The address of the database."""
        return self.server[DATABASE]

    def check(self) -> None:
        """Raise :class:`ProgramError` when one of the programs has ended."""
        for each in self.programs:
            each.check()

    def bothy_server(self, *words: str) -> str:
        """What a command of ``bothy-server`` prints. Raises :class:`ProgramError`."""
        return ask("bothy-server", words, self.server)

    def link(self) -> str:
        """Signs a browser in as Robin, once: the invite is behind the ``#``, which no server and no log sees."""
        invite = administer(self.server, "person", "invite", "Robin")["invite"]
        return f"{self.page}/#invite={invite}"

    def wait_online(self) -> None:
        """Until the device sees the host online, through whichever node. Raises :class:`ProgramError`."""
        wait_for_host(self.nodes, self.programs[-1])  # first: who came through the edge shows that it serves again
        self.programs[-1].wait(lambda: _presence(self) == "online")

    def bothy(self, *words: str) -> str:
        """What the device's ``bothy`` prints. Raises :class:`ProgramError`."""
        return ask("bothy", words, self.device)


@contextmanager
def running_world(say: Say, mode: Mode = "hash") -> Iterator[World]:
    """Start everything, telling ``say`` each step; stop it in reverse order at the end. Raises :class:`ProgramError`.

    ``mode`` is that of the edge.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(scratch("bothy-demo"))
        say("PostgreSQL")
        postgres = stack.enter_context(running_postgres())
        database = postgres.url(postgres.create_database())
        nodes, worker = stack.enter_context(reserved_nodes())
        say("edge")
        url = stack.enter_context(
            edge([(each.name, "127.0.0.1", each.port) for each in nodes], mode, log=folder / "edge.log")
        )

        page = url.replace("127.0.0.1", "localhost")
        server = server_environment(database, folder / "keys", url, page)
        say("tables and signing key")
        ask("bothy-server", ["migrate"], server)
        ask("bothy-server", ["keys", "init"], server)
        programs = stack.enter_context(running_nodes((*nodes, worker), server, folder, say))

        say("a person, Robin, and their device")
        robin = administer(server, "person", "add", "Robin", "--operator")
        device = log_in(folder / "device", url, "demo", robin["invite"])
        say(f"a host, {HOST}")
        added = administer(server, "host", "add", HOST, "--owner", "Robin")
        host = stack.enter_context(running_host(folder, url, added["code"]))
        world = World(url, page, folder, postgres, nodes, worker, server, device, (*programs, host))
        world.wait_online()
        yield world


def stop_nodes(world: World) -> None:
    """Stop the nodes and the worker, as an operator does before a restore; edge, host and device stay."""
    for each in world.programs[:-1]:
        each.send(signal.SIGTERM)
    for each in world.programs[:-1]:
        each.stop()


@contextmanager
def running_again(world: World) -> Iterator[World]:
    """New nodes and a new worker where those of a world were stopped, with its settings; its host dials in by itself.

    Raises :class:`ProgramError`.
    """
    with running_nodes((*world.nodes, world.worker), world.server, world.folder, lambda _: None) as programs:
        running = replace(world, programs=(*programs, world.programs[-1]))
        running.wait_online()
        yield running


def _presence(world: World) -> str:
    return next((each["presence"] for each in json.loads(world.bothy("hosts", "--json")) if each["name"] == HOST), "")
