"""The overlay with two nodes in containers, a host and a device beside it: what ``make docker`` looks at."""

from __future__ import annotations

import json
import resource
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bothy_kit.engine import LABEL, DockerError, Engine, Say, compose_binary, run
from bothy_kit.images import ROOT, Images
from bothy_kit.processes import reserved_port, scratch
from bothy_kit.world_parts import HOST

EDGE_INSIDE = "http://edge:8080"
"""The edge as the nodes reach it."""
_SERVICES = ("postgres", "migrate", "api", "api-2", "worker", "edge")
_SUBNET = "172.30.85.0/24"
_UP_S = 180
_ONLINE_S = 60.0
_HOST_SETTINGS = '[profile.shell]\nusers = ["bothy"]\n'


@dataclass(frozen=True, slots=True)
class Overlay:
    """The Compose project under a name of its own."""

    engine: Engine
    settings: dict[str, str]
    """What ``.env`` would hold."""
    labels: Path
    """A file that adds the label of our containers."""
    name: str = field(default_factory=lambda: f"bothy-test-{secrets.token_hex(3)}")

    def compose(self, *words: str, line: str | None = None, within_s: float = 120) -> str:
        """What Compose prints. Raises :class:`DockerError`."""
        folder = ROOT / "infra" / "compose"
        files = [folder / "compose.yaml", folder / "compose.multi-node.yaml", self.labels]
        where = [word for each in files for word in ("--file", each)]
        names: list[str | Path] = [
            "--project-name",
            self.name,
            "--project-directory",
            folder,
            "--env-file",
            "/dev/null",
        ]
        return run(
            [compose_binary(), *names, *where, "--profile", "direct", *words],
            {**self.engine.environment, **self.settings},
            line=line,
            within_s=within_s,
        )

    def server(self, *words: str) -> str:
        """``bothy-server`` on the first node."""
        return self.compose("exec", "-T", "api", "bothy-server", *words)


@dataclass(frozen=True, slots=True)
class ContainerWorld:
    """What runs."""

    overlay: Overlay
    url: str
    """The edge as this machine reaches it."""
    device: str
    """The container in which ``bothy`` is logged in."""
    password: str
    """The database's."""

    def bothy(self, *words: str) -> str:
        """What the device's ``bothy`` prints. Raises :class:`DockerError`."""
        return self.overlay.engine.docker("exec", self.device, "bothy", *words)


@contextmanager
def running_containers(engine: Engine, images: Images, say: Say) -> Iterator[ContainerWorld]:
    """Start everything, take it down at the end. Raises :class:`DockerError`."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch("bothy-compose"))
        folder.chmod(0o755)
        port = stack.enter_context(reserved_port())
        url = f"http://127.0.0.1:{port}"
        labels = folder / "labels.yaml"
        labels.write_text(json.dumps({"services": {name: {"labels": [LABEL]} for name in _SERVICES}}))
        password = secrets.token_hex(24)
        overlay = Overlay(engine, _settings(images, url, port, _secret_folder(folder, password)), labels)
        stack.callback(overlay.compose, "down", "--volumes", "--timeout", "10", "--remove-orphans")
        say("the key store")
        overlay.compose("run", "--rm", "--no-deps", "-T", "api", "bothy-server", "keys", "init")
        say("compose up: PostgreSQL, migrations, two nodes, worker, edge")
        try:
            overlay.compose("up", "--detach", "--no-build", "--wait", "--wait-timeout", str(_UP_S), within_s=_UP_S + 30)
        except DockerError as error:
            raise DockerError(f"{error}\n{overlay.compose('logs', '--tail', '20', '--no-color')}") from error
        say("a person, Robin, their device, and a host")
        device = stack.enter_context(_beside(overlay, images, "device"))
        host = stack.enter_context(_beside(overlay, images, "host"))
        world = ContainerWorld(overlay, url, device, password)
        robin = json.loads(overlay.server("person", "add", "Robin", "--operator", "--json"))
        engine.docker("exec", "--interactive", device, "bothy", "login", url, "--name", "test", line=robin["invite"])
        added = json.loads(overlay.server("host", "add", HOST, "--owner", "Robin", "--json"))
        config = "/tmp/host.toml"
        engine.docker("exec", "--interactive", host, "tee", config, line=_HOST_SETTINGS)
        engine.docker("exec", "--interactive", host, "bothy-host", "--config", config, "pair", url, line=added["code"])
        engine.docker("exec", "--detach", host, "bothy-host", "--config", config, "run")
        _wait_online(world)
        yield world


def _secret_folder(beside: Path, password: str) -> Path:
    """As the README says."""
    folder = beside / "secrets"
    folder.mkdir(mode=0o700)
    file = folder / "database-password"
    file.write_text(f"{password}\n")
    file.chmod(0o444)
    return folder


def _settings(images: Images, url: str, port: int, secret_folder: Path) -> dict[str, str]:
    bothy, _, version = images.bothy.rpartition(":")
    nginx, _, nginx_version = images.nginx.rpartition(":")
    return {
        "BOTHY_PUBLIC_ORIGINS": f"{url},{EDGE_INSIDE}",
        "BOTHY_SECRET_DIR": str(secret_folder),
        "BOTHY_HTTP_PUBLISH_PORT": str(port),
        "BOTHY_SUBNET": _SUBNET,
        "BOTHY_OPEN_FILES": str(min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])),
        "BOTHY_IMAGE": bothy,
        "BOTHY_VERSION": version,
        "BOTHY_POSTGRES_IMAGE": images.postgres,
        "BOTHY_NGINX_IMAGE": nginx,
        "BOTHY_NGINX_VERSION": nginx_version,
        "BOTHY_HOSTS_PAIRING": "auto",
    }


@contextmanager
def _beside(overlay: Overlay, images: Images, role: str) -> Iterator[str]:
    """A container on this machine's network, as hardened as the services, in which commands are run."""
    name = f"{overlay.name}-{role}"
    hardened = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--tmpfs", "/tmp"]
    own = "uid=10001,gid=10001,mode=0700"
    homes = ["--tmpfs", f"/var/lib/bothy:{own}", "--tmpfs", f"/var/lib/bothy-host:{own}"]
    words = ["--detach", "--name", name, "--label", LABEL, "--network", "host", *hardened, *homes]
    overlay.engine.docker("run", *words, images.bothy, "sleep", "infinity")
    try:
        yield name
    finally:
        overlay.engine.docker("rm", "--force", "--volumes", name)


def _wait_online(world: ContainerWorld) -> None:
    deadline = time.monotonic() + _ONLINE_S
    while not any(each["presence"] == "online" for each in json.loads(world.bothy("hosts", "--json"))):
        if time.monotonic() > deadline:
            raise DockerError(f"{HOST} is not online after {_ONLINE_S:.0f} s")
        time.sleep(0.2)
