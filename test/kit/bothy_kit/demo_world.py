"""The whole of bothy on this machine as real processes: what ``make demo`` runs and its check looks at.

One folder, one PostgreSQL, two api nodes, a worker, the example edge, a paired host service with this machine's shell and
a device that is logged in. Nothing outlives the block, and nothing is left when its program is killed.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from bothy_kit.nginx import Mode, edge
from bothy_kit.postgres import Postgres, running_postgres
from bothy_kit.processes import reserved_port, scratch, start, stop

HOST = "lab-1"
_WAIT_S = 60.0
_STEP_S = 0.1
_LOG_LINES = 20
_DATABASE = "BOTHY_DATABASE__URL"

Say = Callable[[str], None]


class DemoError(Exception):
    """Something did not start or ended by itself. The message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Node:
    """One api node."""

    name: str
    port: int
    internal_port: int

    def gauge(self, name: str) -> float:
        """A metric of the node, as its internal listener shows it now; 0 when it is not there."""
        found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", get(self.internal_port, "/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else 0.0


@dataclass(frozen=True, slots=True)
class _Program:
    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise when it has ended."""
        if self.process.poll() is not None:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
            raise DemoError(f"{self.name} ended with {self.process.returncode}:\n{tail}")


@dataclass(frozen=True, slots=True)
class World:
    """What runs."""

    url: str
    folder: Path
    postgres: Postgres
    nodes: tuple[Node, ...]
    worker: Node
    server: Mapping[str, str]
    """The environment of ``bothy-server``: its settings."""
    device: Mapping[str, str]
    """The environment in which ``bothy`` is the demo's device."""
    programs: tuple[_Program, ...]
    """The nodes, the worker and the host service."""

    @property
    def database(self) -> str:
        """The address of the database."""
        return self.server[_DATABASE]

    def check(self) -> None:
        """Raise :class:`DemoError` when one of the programs has ended."""
        for each in self.programs:
            each.check()

    def bothy_server(self, *words: str) -> str:
        """What a command of ``bothy-server`` prints. Raises :class:`DemoError`."""
        return _ask("bothy-server", words, self.server)

    def wait_online(self) -> None:
        """Until the device sees the host online, through whichever node. Raises :class:`DemoError`."""
        _wait(lambda: _presence(self) == "online", self.programs[-1])
        for node in self.nodes:
            _wait(partial(_knows_a_host, node), self.programs[-1])

    def bothy(self, *words: str) -> str:
        """What the device's ``bothy`` prints. Raises :class:`DemoError`."""
        return _ask("bothy", words, self.device)


def command(name: str) -> str:
    """The path of one of our programs, as installed beside this Python."""
    return str(Path(sys.executable).with_name(name))


@contextmanager
def running_world(say: Say, mode: Mode = "hash") -> Iterator[World]:
    """Start everything, telling ``say`` each step; stop it in reverse order at the end. Raises :class:`DemoError`.

    ``mode`` is that of the edge.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(scratch("bothy-demo"))
        say("PostgreSQL")
        postgres = stack.enter_context(running_postgres())
        database = postgres.url(postgres.create_database())
        nodes = tuple(
            Node(name, stack.enter_context(reserved_port()), stack.enter_context(reserved_port()))
            for name in ("api-1", "api-2")
        )
        worker = Node("worker", stack.enter_context(reserved_port()), stack.enter_context(reserved_port()))
        say("edge")
        url = stack.enter_context(
            edge([(each.name, "127.0.0.1", each.port) for each in nodes], mode, log=folder / "edge.log")
        )

        server = _server_environment(database, folder / "keys", url)
        say("tables and signing key")
        _ask("bothy-server", ["migrate"], server)
        _ask("bothy-server", ["keys", "init"], server)
        programs = stack.enter_context(_running_nodes((*nodes, worker), server, folder, say))

        say("a person, Robin, and their device")
        robin = json.loads(_ask("bothy-server", ["person", "add", "Robin", "--operator", "--json"], server))
        device = _environment({"BOTHY_HOME": str(folder / "device")})
        _ask("bothy", ["login", url, "--name", "demo"], device, robin["invite"])
        say(f"a host, {HOST}")
        added = json.loads(_ask("bothy-server", ["host", "add", HOST, "--owner", "Robin", "--json"], server))
        config = _write_host_settings(folder, url)
        _ask("bothy-host", ["--config", str(config), "pair", url], _environment({}), added["code"])
        service = [command("bothy-host"), "--config", str(config), "run"]
        host = stack.enter_context(_running("bothy-host", service, _environment({}), folder))
        world = World(url, folder, postgres, nodes, worker, server, device, (*programs, host))
        world.wait_online()
        yield world


def stop_nodes(world: World) -> None:
    """Stop the nodes and the worker, as an operator does before a restore; edge, host and device stay."""
    for each in world.programs[:-1]:
        each.process.terminate()
    for each in world.programs[:-1]:
        stop(each.process)


@contextmanager
def running_again(world: World) -> Iterator[World]:
    """New nodes and a new worker where those of a world were stopped, with its settings; its host dials in by itself.

    Raises :class:`DemoError`.
    """
    with _running_nodes((*world.nodes, world.worker), world.server, world.folder, lambda _: None) as programs:
        running = replace(world, programs=(*programs, world.programs[-1]))
        running.wait_online()
        yield running


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    """Ours without settings of another bothy."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BOTHY_")} | dict(own)


def _server_environment(database: str, keys: Path, url: str) -> dict[str, str]:
    return _environment(
        {
            _DATABASE: database,
            "BOTHY_SECRETS__SIGNING_KEY_DIR": str(keys),
            "BOTHY_CLUSTER__MODE": "multi",
            "BOTHY_HOSTS__PAIRING": "auto",
            "BOTHY_SERVER__PUBLIC_ORIGINS": url,
        }
    )


def _write_host_settings(folder: Path, url: str) -> Path:
    """The shell runs as whoever runs the demo. A JSON string is a TOML string too."""
    user = pwd.getpwuid(os.geteuid())
    lines = (
        f"server = {json.dumps(url)}",
        f"state_dir = {json.dumps(str(folder / 'host'))}",
        f"allow_root = {json.dumps(user.pw_uid == 0)}",
        "[profile.shell]",
        f"users = [{json.dumps(user.pw_name)}]",
    )
    path = folder / "host.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


@contextmanager
def _running_nodes(
    nodes: Sequence[Node], server: Mapping[str, str], folder: Path, say: Say
) -> Iterator[tuple[_Program, ...]]:
    with ExitStack() as stack:
        programs = []
        for node in nodes:
            say(node.name)
            programs.append(stack.enter_context(_running_node(node, server, folder)))
        for node, program in zip(nodes, programs, strict=True):
            _wait(partial(_ready, node), program)
        yield tuple(programs)


@contextmanager
def _running_node(node: Node, server: Mapping[str, str], folder: Path) -> Iterator[_Program]:
    own = {
        "BOTHY_SERVER__ROLE": "worker" if node.name == "worker" else "api",
        "BOTHY_SERVER__LISTEN": f"127.0.0.1:{node.port}",
        "BOTHY_SERVER__INTERNAL_LISTEN": f"127.0.0.1:{node.internal_port}",
    }
    with _running(node.name, [command("bothy-server"), "serve"], {**server, **own}, folder) as program:
        yield program


@contextmanager
def _running(name: str, words: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[_Program]:
    path = folder / f"{name}.log"
    with path.open("ab") as log:
        process = start(words, env=environment, output=log, death_signal=signal.SIGTERM)
    try:
        yield _Program(name, process, path)
    finally:
        stop(process)


def _ask(name: str, words: Sequence[str], environment: Mapping[str, str], line: str = "") -> str:
    """Run a short command; secrets go in as a line of input, since arguments show in the list of processes."""
    run = subprocess.run(
        [command(name), *words],
        env=dict(environment),
        input=f"{line}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=_WAIT_S,
    )
    if run.returncode != 0:
        raise DemoError(f"{name} {' '.join(words)} ended with {run.returncode}:\n{run.stderr}{run.stdout}")
    return run.stdout


def _wait(done: Callable[[], bool], program: _Program) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not done():
        program.check()
        if time.monotonic() > deadline:
            raise DemoError(
                f"{program.name} is not ready after {_WAIT_S:.0f} s; its log ends:\n{program.log.read_text()[-2000:]}"
            )
        time.sleep(_STEP_S)


def _knows_a_host(node: Node) -> bool:
    return node.gauge("bothy_hosts_connected") == 1


def _ready(node: Node) -> bool:
    try:
        return get(node.internal_port, "/readyz")[0] == 200
    except (OSError, HTTPException):
        return False


def _presence(world: World) -> str:
    return next((each["presence"] for each in json.loads(world.bothy("hosts", "--json")) if each["name"] == HOST), "")


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body of an internal listener."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
