"""A restore with every program as a process, step by step as ``docs/operations/backup.md`` says.

The rows go through ``pg_dump`` and ``pg_restore`` into another database, the keys through ``keys export`` and ``keys
import`` into another folder; edge, host and device stay where they are and notice an outage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from bothy_kit.demo_check import on_terminal, opened
from bothy_kit.demo_world import World, running_again, running_world, stop_nodes
from bothy_kit.programs import command

_WAIT_S = 60.0


def say(_: str) -> None:
    """The steps of the start are not shown."""


@dataclass(frozen=True, slots=True)
class Left:
    """A session that goes on without its device."""

    id: str
    word: str
    """What its shell was told."""
    shell: int
    """Process id."""

    def runs(self) -> bool:
        return Path(f"/proc/{self.shell}").exists()


def test_a_restore_brings_back_who_was_there() -> None:
    with running_world(say) as first:
        kept, ended = left_open(first, "kept"), left_open(first, "ended")
        older, known = saved(first, "older"), join_value(first)
        first.bothy("close", ended.id)
        later = left_open(first, "later")
        newest = saved(first, "newest")
        stop_nodes(first)

        with restored(first, newest, "newest") as world:
            held = join_value(world)
            assert held > known, "the older copy is behind what the host holds"
            assert asked(world, kept) == "kept"
            assert asked(world, later) == "later"
            assert ends(world) == {ended.id: "client_closed"}

        with restored(first, older, "older") as world:
            assert join_value(world) > held
            assert asked(world, kept) == "kept"
            wait_for(lambda: ends(world) == {ended.id: "host_lost"})
            wait_for(lambda: not later.runs())
            assert later.id not in world.bothy("sessions", "--all", "--json")
            assert asked(world, left_open(world, "new")) == "new"


def left_open(world: World, word: str) -> Left:
    """Open a session, tell its shell a word, and leave it."""
    with opened(world) as (screen, ended):
        screen.type(b"exec sh\nPS1= PS2=; WORD=%s; echo shell''=$$.\n" % word.encode())
        shell = int(screen.expect(rb"shell=(\d+)\.")[1])
        screen.type(b"~.")
        session_id = screen.expect(rb"bothy attach ([0-9a-f-]{36})")[1].decode()
        screen.finish()
        assert ended() == 0
    return Left(session_id, word, shell)


def asked(world: World, left: Left) -> str:
    """The word that its shell knows, by attaching to it."""
    with on_terminal([command("bothy"), "attach", left.id], world.device) as (screen, ended):
        screen.type(b"\necho word''=$WORD.\n")
        word = screen.expect(rb"word=(\w+)\.")[1]
        screen.type(b"~.")
        screen.finish()
        assert ended() == 0
    return word.decode()


def saved(world: World, name: str) -> Path:
    """Copies of rows and keys in a folder."""
    folder = world.folder / f"backup-{name}"
    folder.mkdir(mode=0o700)
    world.bothy_server("keys", "export", str(folder / "keys.json"))
    world.postgres.dump(world.database, folder / "rows.dump")
    return folder


@contextmanager
def restored(world: World, backup: Path, name: str) -> Iterator[World]:
    """New nodes on a new database and a new key store that hold what was saved."""
    settings = {
        "BOTHY_DATABASE__URL": world.postgres.restored(backup / "rows.dump"),
        "BOTHY_SECRETS__SIGNING_KEY_DIR": str(world.folder / f"keys-{name}"),
    }
    moved = replace(world, server={**world.server, **settings})
    moved.bothy_server("keys", "import", str(backup / "keys.json"))
    moved.bothy_server("migrate")
    with running_again(moved) as running:
        yield running
        running.check()
        stop_nodes(running)


def join_value(world: World) -> int:
    """The newest one that the host is known to hold."""
    with psycopg.connect(world.database) as connection:
        found = connection.execute("SELECT join_confirmed FROM hosts").fetchall()
    assert len(found) == 1
    return int(found[0][0])


def ends(world: World) -> dict[str, str]:
    """Why each session that is over ended."""
    with psycopg.connect(world.database) as connection:
        query = "SELECT id::text, close_reason FROM terminal_sessions WHERE state = 'closed'"
        return dict(connection.execute(query).fetchall())


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)
