"""The edge with everything behind it as real processes: two nodes, ``bothy-host`` and ``bothy`` (TM-T15)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bothy_kit.demo_check import opened
from bothy_kit.demo_world import World, running_world
from bothy_kit.world_parts import get

SIDES = ("client", "host")


def say(_: str) -> None:
    """The steps of the start are not shown."""


def unpaired(world: World) -> dict[str, float]:
    """The counter by side, over all nodes."""
    name = r'bothy_terminal_relay_unpaired_total\{{[^}}]*bothy_terminal_side="{}"[^}}]*\}}'
    return {side: sum(node.gauge(name.format(side)) for node in world.nodes) for side in SIDES}


def ready(world: World) -> list[int]:
    return [get(node.internal_port, "/readyz")[0] for node in world.nodes]


def ends(world: World) -> list[tuple[str, int]]:
    """Side and close code of each lone side that a node has closed, from the logs of the nodes."""
    records = [
        json.loads(line)
        for node in world.nodes
        for line in (world.folder / f"{node.name}.log").read_text().splitlines()
        if "terminal relay side unpaired" in line
    ]
    return sorted((each["bothy.terminal.side"], int(each["bothy.close.code"])) for each in records)


def counted(world: World, side: float) -> bool:
    """Whether both sides come to be counted so often. Who finds out first has closed the row, the other hears of it."""
    deadline = time.monotonic() + 30
    while unpaired(world) != dict.fromkeys(SIDES, side) and time.monotonic() < deadline:
        time.sleep(0.05)
    return unpaired(world) == dict.fromkeys(SIDES, side)


def bound_ports(pid: int) -> list[str]:
    """Addresses at which a process can be reached from elsewhere: TCP that listens, and UDP, of IPv4 and IPv6."""
    own = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
    found = []
    for table, listening in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == listening and f"socket:[{inode}]" in own:
                found.append(f"{table} {local}")
    return found


@pytest.fixture(scope="module")
def hashed() -> Iterator[World]:
    with running_world(say) as world:
        yield world


def test_tmt15_through_nginx_with_hash_routing(hashed: World) -> None:
    for _ in range(4):  # the edge takes turns: the host's node is not always the one that relays
        with opened(hashed) as (screen, ended):
            screen.type(b"exec sh\nPS1= PS2=; echo $((6 * 7)) answers\n")
            screen.expect(rb"42 answers\r\n")
            screen.type(b"exit 7\n")
            screen.finish()
            assert ended() == 7
    assert unpaired(hashed) == {"client": 0, "host": 0}
    assert ready(hashed) == [200, 200]


def test_a_host_with_a_session_can_be_dialled_by_nobody(hashed: World) -> None:
    service = hashed.programs[-1].pid
    with opened(hashed) as (screen, ended):
        screen.type(b"exec sh\nPS1= PS2=; echo he''re\n")
        screen.expect(rb"here\r\n")
        assert bound_ports(service) == []
        assert bound_ports(hashed.programs[0].pid), "what looks for ports finds those of a node"
        screen.type(b"exit 0\n")
        screen.finish()
        assert ended() == 0


def test_tmt15_through_nginx_without_hash_routing() -> None:
    with running_world(say, "split") as world:
        assert unpaired(world) == {"client": 0, "host": 0}
        with opened(world) as (screen, ended):
            screen.finish()
            assert ended() != 0
        assert counted(world, 1), (unpaired(world), ends(world))
        assert ends(world) == [("client", 4102), ("host", 4102)]
        assert unpaired(world) == {"client": 1, "host": 1}
        assert ready(world) == [200, 200]
        world.check()
