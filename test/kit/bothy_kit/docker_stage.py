"""``make docker``: the shipped containers, tried as an operator would. Needs an engine, or root to start one.

Images, a suite on a PostgreSQL of testcontainers, the overlay with two nodes, where its password shows, the doctor, a
session, and sessions with a node stopped. Nothing is left but images.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from contextlib import suppress

from bothy_kit.container_world import EDGE_INSIDE, ContainerWorld, running_containers
from bothy_kit.demo_check import CheckError, exercise, on_terminal
from bothy_kit.edge_container import check_edge
from bothy_kit.engine import LABEL, DockerError, Engine, NoEngineError, Say, engine
from bothy_kit.images import ROOT, Images, make_images
from bothy_kit.world_parts import HOST

_BUDGET_S = 600
_AFTER_STOP = 6
"""Sessions that are opened with one node stopped; about half of their ids belong to it."""
_BARE = """
for each in cc gcc g++ make pip pip3; do ! command -v $each || exit 1; done
test "$(id -u)" -ge 1000 && ! touch /opt/bothy/written 2> /dev/null
"""
_SUITE_S = 240
_SUITE = ("test/kit/tests/test_postgres.py", "services/server/tests/platform/test_unit_of_work.py")


def main() -> int:
    """The exit status: 1 when something failed, 2 when there is no engine; with ``--install`` that is 0."""
    parser = argparse.ArgumentParser(prog="make docker", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="before taking it down, wait for Ctrl-C")
    parser.add_argument("--install", action="store_true", help="install an engine from Debian's packages when root")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # as Ctrl-C: everything is taken down
    begun = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {what}", flush=True)

    try:
        with engine(say, install=chosen.install) as docker:
            _stage(docker, say, keep=chosen.keep)
    except NoEngineError as error:
        print(f"\nthe container stage DID NOT RUN: {error}", file=sys.stderr)
        return 0 if chosen.install else 2
    except (CheckError, DockerError) as error:
        print(f"\nfailed: {error}", file=sys.stderr)
        return 1
    taken = time.monotonic() - begun
    say("passed" if chosen.keep or taken <= _BUDGET_S else f"passed, but over the budget of {_BUDGET_S} s")
    return 0


def _stage(docker: Engine, say: Say, *, keep: bool) -> None:
    images = make_images(docker, say)
    _image(docker, images, say)
    _suite(docker, images, say)
    with running_containers(docker, images, say) as world:
        _password(world, say)
        check_edge(world.overlay)
        say("nginx reads the files as shipped, with no right that it does not need")
        _doctor(world, say)
        _session(world, say)
        _one_node_less(world, say)
        if keep:
            _look(world, say)
        say("taking it down")
    if left := docker.containers():
        raise CheckError(f"containers are left: {', '.join(left)}")


def _image(docker: Engine, images: Images, say: Say) -> None:
    docker.docker("run", "--rm", "--label", LABEL, "--read-only", "--cap-drop", "ALL", images.bothy, "sh", "-c", _BARE)
    say("the image has no build tools, and its account is an ordinary one")


def _password(world: ContainerWorld, say: Say) -> None:
    """It is where a file is mounted, and nowhere else that a person who looks at containers sees."""
    docker = world.overlay.engine.docker
    for name in world.overlay.compose("ps", "--all", "--quiet").split():
        if world.password in docker("inspect", name):
            raise CheckError(f"docker inspect {name} shows the database's password")
    for name in world.overlay.compose("ps", "--quiet").split():
        if world.password in docker("top", name) + docker("exec", name, "cat", "/proc/1/environ"):
            raise CheckError(f"a process of {name} shows the database's password")
    say("the database's password is in no container's settings, commands and environment")


def _look(world: ContainerWorld, say: Say) -> None:
    host = world.overlay.engine.environment.get("DOCKER_HOST")
    say(f"the edge is at {world.url}{f', the engine at DOCKER_HOST={host}' if host else ''}; Ctrl-C ends it")
    with suppress(KeyboardInterrupt):
        signal.pause()


def _doctor(world: ContainerWorld, say: Say) -> None:
    print(world.overlay.server("doctor", "--edge", EDGE_INSIDE), flush=True)
    say("the doctor finds nothing")


def _session(world: ContainerWorld, say: Say) -> None:
    with on_terminal(_bothy_open(world), dict(world.overlay.engine.environment)) as (screen, ended):
        exercise(screen, ended, say)


def _one_node_less(world: ContainerWorld, say: Say) -> None:
    world.overlay.compose("stop", "--timeout", "20", "api-2")
    say("api-2 is stopped")
    for number in range(_AFTER_STOP):
        with on_terminal(_bothy_open(world), dict(world.overlay.engine.environment)) as (screen, ended):
            screen.type(b"echo still he''re; exit 3\n")
            screen.expect(rb"still here\r\n")
            screen.finish()
            if (status := ended()) != 3:
                raise CheckError(f"session {number + 1} with one node less ended with {status}")
    say(f"{_AFTER_STOP} new sessions on the node that is left")


def _bothy_open(world: ContainerWorld) -> list[str]:
    return ["docker", "exec", "--interactive", "--tty", world.device, "bothy", "open", HOST]


def _suite(docker: Engine, images: Images, say: Say) -> None:
    say("a suite on PostgreSQL of testcontainers")
    mine = {"BOTHY_TEST_PG_IMAGE": images.postgres, "TESTCONTAINERS_CONNECTION_MODE": "docker_host"}
    command = [sys.executable, "-m", "pytest", "-q", *_SUITE]
    try:
        subprocess.run(command, cwd=ROOT, env={**docker.environment, **mine}, check=True, timeout=_SUITE_S)
    except subprocess.SubprocessError as error:
        raise CheckError(f"the suite failed: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
