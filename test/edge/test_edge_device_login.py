"""A machine that is let in on another one: the real programs, through the edge with two nodes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from bothy_kit.demo_world import World, running_world
from bothy_kit.programs import ask, command, without_ours

CODE = re.compile(r"bothy devices approve ([0-9A-Z]{4}-[0-9A-Z]{4})")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running_world(lambda _: None) as world:
        yield world


def home(folder: Path) -> Mapping[str, str]:
    """The environment of a machine that no relay knows."""
    return without_ours({"BOTHY_HOME": str(folder / "bothy")})


@contextmanager
def waiting(world: World, environment: Mapping[str, str]) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """``bothy login --approve`` on another machine: the program, the code that it shows, and the fingerprint."""
    words = [command("bothy"), "login", world.url, "--approve", "--name", "tablet"]
    program = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )
    try:
        assert program.stderr is not None
        shown = ""
        while "Waiting" not in shown:
            line = program.stderr.readline()
            assert line, shown
            shown += line
        code, fingerprint = CODE.search(shown), re.search(r"SHA256:\S+", shown)
        assert code is not None
        assert fingerprint is not None
        yield program, code[1], fingerprint[0]
    finally:
        program.kill()
        program.communicate()


def approve(world: World, code: str, answer: str) -> subprocess.CompletedProcess[str]:
    words = [command("bothy"), "devices", "approve", code]
    return subprocess.run(
        words, env=dict(world.device), input=answer, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_machine_is_let_in_and_works(world: World, tmp_path: Path) -> None:
    with waiting(world, home(tmp_path)) as (program, code, fingerprint):
        approved = approve(world, code.lower(), "y\n")
        assert approved.returncode == 0, approved.stderr
        assert fingerprint in approved.stderr
        assert "tablet is a device of yours now" in approved.stdout
        out, _ = program.communicate(timeout=60)
    assert out == f"logged in at {world.url} as Robin; this device is called tablet\n"
    (host,) = json.loads(ask("bothy", ["hosts", "--json"], home(tmp_path)))
    assert host["name"] == "lab-1"
    assert {each["name"] for each in json.loads(world.bothy("devices", "--json"))} >= {"demo", "tablet"}


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_a_machine_that_its_person_does_not_know_is_not_let_in(world: World, tmp_path: Path, answer: str) -> None:
    with waiting(world, home(tmp_path)) as (program, code, _):
        refused = approve(world, code, answer)
        if answer:
            assert (refused.returncode, refused.stdout) == (0, "tablet was sent away\n")
            _, told = program.communicate(timeout=60)
            assert told == "bothy: this device was sent away on the other one\n"
            assert program.returncode == 1
        else:
            assert refused.returncode == 1
            assert refused.stderr.endswith(
                "bothy: nobody could be asked, so it is not let in; run this in a terminal\n"
            )
            assert program.poll() is None
    assert not (tmp_path / "bothy" / "servers").exists()


def test_a_code_that_nobody_shows_is_refused_in_one_line(world: World) -> None:
    refused = approve(world, "7QK3-M0VX", "y\n")
    assert refused.returncode == 1
    assert refused.stderr.startswith("bothy: no device waits with this code")
    assert refused.stderr.count("\n") == 1


def test_two_ways_at_once_are_one_too_many(world: World, tmp_path: Path) -> None:
    words = [command("bothy"), "login", world.url, "--approve", "--invite", "7QK3M"]
    refused = subprocess.run(words, env=home(tmp_path), capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 2
    assert "--invite and --approve are two ways; choose one" in refused.stderr
