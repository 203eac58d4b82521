"""Where a scenario plays: the world, the person in it, and how long things last."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from person import Person

from bothy_kit.demo_world import Node
from bothy_kit.spoilable_world import SpoilableWorld, Terms


@dataclass(frozen=True, slots=True)
class Scale:
    """Seconds, and the settings that make them long: longer than every time limit that falls into them."""

    terms: Terms
    asleep_s: float
    outage_s: float
    database_s: float
    flood: int
    """Bytes per second that no replay memory holds while the device is asleep."""


FULL = Scale(Terms(), asleep_s=150, outage_s=50, database_s=60, flood=256 * 1024)
"""The defaults: longest of them is ``terminal.stall_timeout``, 120 s."""

QUICK = Scale(
    Terms(
        server={
            "BOTHY_WIRE__PING_INTERVAL": "1",
            "BOTHY_WIRE__PING_TIMEOUT": "2",
            "BOTHY_TERMINAL__STALL_TIMEOUT": "4",
            "BOTHY_TERMINAL__SESSION_TOKEN_TTL": "5",
            "BOTHY_IDENTITY__ACCESS_TOKEN_TTL": "5",
            "BOTHY_TERMINAL__HOST_DUPLICATE_PROBE_TIMEOUT": "1",
        },
        host="[host]\nping_interval = 1\nping_timeout = 2\nreplay_bytes = 65536\nrepaint_bytes = 32768\nhold_output = 1",
        device="[wire]\nping_interval = 1\nping_timeout = 2\n",
    ),
    asleep_s=7,
    outage_s=5,
    database_s=6,
    flood=256 * 1024,
)


@dataclass(slots=True)
class Stage:
    """What a fault may pull at."""

    world: SpoilableWorld
    scale: Scale
    person: Person
    session_id: str
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def relay(self) -> Node:
        """The node where both sides of the session are."""
        deadline = time.monotonic() + 30
        while True:
            for node in self.world.nodes:
                if node.gauge("bothy_terminal_relay_pairs") > 0:
                    return node
            if time.monotonic() > deadline:
                raise TimeoutError("no node relays")
            time.sleep(0.05)
