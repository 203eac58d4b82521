"""Every scenario as data: what befalls a session, how often, under how much output, and what is promised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import faults
from faults import Fault

from bothy_kit.network import Direction

Promise = Literal["bytes", "screen"]
"""``bytes``: every byte both ways, once and in order. ``screen``: what is shown goes on without a hole behind a repaint."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One line of the table."""

    name: str
    faults: tuple[Fault, ...]
    """They befall one session, one after the other."""
    hurried: bool = False
    """Every round befalls the same session too, and back-off is kept short. Else each round has a session of its own."""
    quick: int = 1
    full: int = 5
    """How often, in either mode."""
    rate: int | None = 4096
    """Bytes of output per second beside the echo; ``None`` is more than the replay memory holds."""
    promise: Promise = "bytes"


_LONGEST: tuple[tuple[Direction, int], ...] = (("up", 8), ("down", 4))
_HEADER = tuple(
    faults.cut_in_header(network, direction, count)
    for network in range(2)
    for direction, longest in _LONGEST
    for count in range(longest + 1)
)
"""A masked header of a short frame has 6 bytes, of a longer one 8; unmasked 2 and 4."""

_HALVES = tuple(faults.half_close(network, direction) for network in range(2) for direction, _ in _LONGEST)

SCENARIOS = (
    Scenario("a node is killed", (faults.kill_node,), full=20),
    Scenario("a node is drained", (faults.drain_node,)),
    Scenario("all nodes are restarted in turn", (faults.restart_nodes,), full=3),
    Scenario("nginx is restarted", (faults.restart_edge,)),
    Scenario("PostgreSQL is away", (faults.stop_database,), full=1),
    Scenario("the device sleeps, little output", (faults.sleep_device,), full=1),
    Scenario("the device sleeps, much output", (faults.sleep_device,), full=1, rate=None, promise="screen"),
    Scenario("the device's network is away", (faults.lose_device,), full=1),
    Scenario("the host's network is away", (faults.lose_host,), full=2),
    Scenario("both networks are away", (faults.lose_both,), full=2),
    Scenario("both networks are cut", (faults.cut_both,), full=10),
    Scenario("a slow network is cut", (faults.cut_slow,), rate=32_000),
    Scenario("one direction ends", _HALVES, full=3),
    Scenario("a second device in between", (faults.second_device,), full=3, promise="screen"),
    Scenario("cut at each byte of a header", _HEADER, hurried=True, full=1, rate=0),
    Scenario("cut at any byte", (faults.cut_somewhere,), hurried=True, quick=10, full=200, rate=100_000),
)
