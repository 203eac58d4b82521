"""The edge with everything behind it as real processes: two nodes, ``bothy-host`` and ``bothy`` (TM-T15)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from bothy_kit.demo_check import opened
from bothy_kit.demo_world import World, get, running_world

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


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_tmt15_through_nginx_with_hash_routing() -> None:
    with running_world(say) as world:
        for _ in range(4):  # the edge takes turns: the host's node is not always the one that relays
            with opened(world) as (screen, ended):
                screen.type(b"exec sh\nPS1= PS2=; echo $((6 * 7)) answers\n")
                screen.expect(rb"42 answers\r\n")
                screen.type(b"exit 7\n")
                screen.finish()
                assert ended() == 7
        assert unpaired(world) == {"client": 0, "host": 0}
        assert ready(world) == [200, 200]


def test_tmt15_through_nginx_without_hash_routing() -> None:
    with running_world(say, "split") as world:
        assert unpaired(world) == {"client": 0, "host": 0}
        with opened(world) as (screen, ended):
            screen.finish()
            assert ended() != 0
        wait_for(lambda: unpaired(world) == {"client": 1, "host": 1})
        assert ends(world) == [("client", 4102), ("host", 4102)]
        assert unpaired(world) == {"client": 1, "host": 1}
        assert ready(world) == [200, 200]
        world.check()
