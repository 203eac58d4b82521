"""What is typed in a session and what it prints is nowhere but at its two ends.

Searched: every row of the database, every notification, every log of the relay and the edge, the relay's
metrics and the memory of its processes, through which all bytes of the session pass.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from bothy_kit.demo_check import opened
from bothy_kit.demo_world import World, running_world
from bothy_kit.world_parts import get


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running_world(lambda _: None) as running:
        yield running


class Notifications:
    """Everything notified on our channels while the block runs."""

    def __init__(self, database: str) -> None:
        self._connection = psycopg.connect(database, autocommit=True)
        for channel in ("ephemeral", "event_log"):
            self._connection.execute(f"LISTEN {channel}")

    def all(self) -> str:
        """What came so far."""
        return "\n".join(f"{each.channel} {each.payload}" for each in self._connection.notifies(timeout=0.2))

    def close(self) -> None:
        self._connection.close()


@contextmanager
def notifications(database: str) -> Iterator[Notifications]:
    heard = Notifications(database)
    try:
        yield heard
    finally:
        heard.close()


def rows(database: str) -> str:
    """Every row of every table, as text."""
    with psycopg.connect(database) as connection:
        tables = [name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        return "\n".join(
            str(row) for table in tables for (row,) in connection.execute(f"SELECT t::text FROM {table} t").fetchall()
        )


def memory(pid: int) -> Iterator[bytes]:
    """The writable memory of a process, area by area."""
    areas = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw", Path(f"/proc/{pid}/maps").read_text(), re.MULTILINE)
    with Path(f"/proc/{pid}/mem").open("rb", 0) as file:
        for start, end in areas:
            with contextlib.suppress(OSError, ValueError, OverflowError):
                file.seek(int(start, 16))
                yield file.read(int(end, 16) - int(start, 16))


def test_a_canary_is_nowhere_but_at_the_ends(world: World) -> None:
    canary = f"canary{secrets.token_hex(12)}"
    with notifications(world.database) as heard, opened(world) as (screen, ended):
        screen.type(b"exec sh\n")
        screen.type(b"PS1= PS2=; echo he''re\n")
        screen.expect(rb"here\r\n")
        for _ in range(20):
            screen.type(f"echo {canary}\n".encode())
            screen.expect(canary.encode() + rb"\r\n")

        api = [each for each in world.programs if each.name.startswith("api-")]
        for program in api:
            assert not any(canary.encode() in area for area in memory(program.pid)), program.name

        screen.type(b"exit 0\n")
        screen.finish()
        assert ended() == 0
        notified = heard.all()

    assert "terminal.session_open" in notified
    assert canary not in notified
    stored = rows(world.database)
    assert "process_exited" in stored
    assert canary not in stored
    logs = [path for path in world.folder.glob("*.log") if path.name != "bothy-host.log"]
    assert {"api-1.log", "api-2.log", "edge.log"} <= {path.name for path in logs}
    for path in logs:
        assert canary not in path.read_text(errors="replace"), path.name
    for node in world.nodes:
        assert canary not in get(node.internal_port, "/metrics")[1]
