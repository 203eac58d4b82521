"""Where a scenario plays: the world, the person in it, and how long things last."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from bothy_kit.person import Person
from bothy_kit.spoilable_world import SpoilableWorld, Terms
from bothy_kit.world_parts import Node


@dataclass(frozen=True, slots=True)
class Scale:
    """Seconds, and the settings that make them long: longer than every time limit that falls into them."""

    unhurried: Terms
    hurried: Terms
    """With back-off of at most a second, for faults that follow one another faster than they do in life."""
    asleep_s: float
    outage_s: float
    database_s: float
    flood: int
    """Bytes per second that no replay memory holds while the device is asleep."""


_HURRIED_HOST = "[host]\nbackoff_cap = 1\n"
_HURRIED_DEVICE = "[device]\nbackoff_cap = 1\n"

FULL = Scale(
    Terms(),
    Terms(host=_HURRIED_HOST, device=_HURRIED_DEVICE),
    asleep_s=130,
    outage_s=50,
    database_s=60,
    flood=256 * 1024,
)
"""The defaults; the longest that waits for somebody asleep, and does not end the session, is ``terminal.stall_timeout``."""

_QUICK = Terms(
    server={
        "BOTHY_WIRE__PING_INTERVAL": "1",
        "BOTHY_WIRE__PING_TIMEOUT": "2",
        "BOTHY_TERMINAL__STALL_TIMEOUT": "4",
        "BOTHY_TERMINAL__SESSION_TOKEN_TTL": "5",
        "BOTHY_TERMINAL__HOST_DUPLICATE_PROBE_TIMEOUT": "1",
        "BOTHY_IDENTITY__ACCESS_TOKEN_TTL": "5",
        "BOTHY_SERVER__DRAIN_SPREAD": "1",
    },
    host=_HURRIED_HOST + "ping_interval = 1\nping_timeout = 2\n"
    "replay_bytes = 65536\nrepaint_bytes = 32768\nhold_output = 1\n",
    device=_HURRIED_DEVICE + "[wire]\nping_interval = 1\nping_timeout = 2\n",
)
QUICK = Scale(_QUICK, _QUICK, asleep_s=7, outage_s=5, database_s=6, flood=256 * 1024)


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
