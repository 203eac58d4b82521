"""What every world of real programs is made of: nodes, settings, a person's device and a host."""

from __future__ import annotations

import json
import os
import pwd
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from bothy_kit.processes import reserved_port
from bothy_kit.programs import Program, ask, command, running, without_ours

HOST = "lab-1"
DATABASE = "BOTHY_DATABASE__URL"

_NODES = ("api-1", "api-2")
_WORKER = "worker"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Node:
    """One process of the server."""

    name: str
    port: int
    internal_port: int

    def gauge(self, name: str) -> float:
        """A metric of the node, as its internal listener shows it now; 0 when it is not there."""
        found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", get(self.internal_port, "/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else 0.0

    def ready(self) -> bool:
        """Whether it says so."""
        try:
            return get(self.internal_port, "/readyz")[0] == 200
        except (OSError, HTTPException):
            return False

    def knows_a_host(self) -> bool:
        """Whether it would open a session on one; it hears of a host a moment after that has connected."""
        return self.gauge("bothy_hosts_connected") > 0


@contextmanager
def reserved_nodes() -> Iterator[tuple[tuple[Node, ...], Node]]:
    """Names and ports of the api nodes, and of the worker."""
    with ExitStack() as stack:
        ports = [stack.enter_context(reserved_port()) for _ in range(2 * len(_NODES) + 2)]
        *nodes, worker = (
            Node(name, *ports[2 * index : 2 * index + 2]) for index, name in enumerate((*_NODES, _WORKER))
        )
        yield tuple(nodes), worker


@contextmanager
def running_nodes(
    nodes: Sequence[Node], server: Mapping[str, str], folder: Path, say: Say
) -> Iterator[tuple[Program, ...]]:
    """The nodes with the settings of ``server``, when all of them are ready. Raises :class:`ProgramError`."""
    with ExitStack() as stack:
        programs = []
        for node in nodes:
            say(node.name)
            own = {
                "BOTHY_SERVER__ROLE": "worker" if node.name == _WORKER else "api",
                "BOTHY_SERVER__LISTEN": f"127.0.0.1:{node.port}",
                "BOTHY_SERVER__INTERNAL_LISTEN": f"127.0.0.1:{node.internal_port}",
            }
            words = [command("bothy-server"), "serve"]
            programs.append(stack.enter_context(running(node.name, words, {**server, **own}, folder)))
        for node, program in zip(nodes, programs, strict=True):
            program.wait(node.ready)
        yield tuple(programs)


def server_environment(database: str, keys: Path, *origins: str) -> dict[str, str]:
    """The settings of ``bothy-server``; ``origins`` are the addresses that are dialled."""
    return without_ours(
        {
            DATABASE: database,
            "BOTHY_SECRETS__SIGNING_KEY_DIR": str(keys),
            "BOTHY_CLUSTER__MODE": "multi",
            "BOTHY_HOSTS__PAIRING": "auto",
            "BOTHY_SERVER__PUBLIC_ORIGINS": ",".join(origins),
            "BOTHY_SERVER__TRUSTED_PROXIES": "127.0.0.1",
        }
    )


def administer(server: Mapping[str, str], *words: str) -> dict[str, Any]:
    """What a command of ``bothy-server`` says. Raises :class:`ProgramError`."""
    said: dict[str, Any] = json.loads(ask("bothy-server", [*words, "--json"], server))
    return said


def log_in(home: Path, url: str, name: str, invite: str) -> dict[str, str]:
    """The environment in which ``bothy`` is a new device. Raises :class:`ProgramError`."""
    device = without_ours({"BOTHY_HOME": str(home)})
    ask("bothy", ["login", url, "--name", name], device, invite)
    return device


@contextmanager
def running_host(folder: Path, url: str, code: str, settings: str = "") -> Iterator[Program]:
    """A host service that is paired, with more ``settings`` as TOML. Its shells run as whoever runs this.

    Raises :class:`ProgramError`.
    """
    user = pwd.getpwuid(os.geteuid())
    lines = (
        f"server = {json.dumps(url)}",  # a JSON string is a TOML string too
        f"state_dir = {json.dumps(str(folder / 'host'))}",
        f"allow_root = {json.dumps(user.pw_uid == 0)}",
        settings,
        "[profile.shell]",
        f"users = [{json.dumps(user.pw_name)}]",
    )
    config = folder / "host.toml"
    config.write_text("\n".join(lines) + "\n")
    words = ["--config", str(config)]
    ask("bothy-host", [*words, "pair", url], without_ours({}), code)
    with running("bothy-host", [command("bothy-host"), *words, "run"], without_ours({}), folder) as program:
        yield program


def wait_for_host(nodes: Sequence[Node], host: Program) -> None:
    """Until every node would open a session on the host. Raises :class:`ProgramError`."""
    for node in nodes:
        host.wait(node.knows_a_host)


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body of an internal listener."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
