"""A node that dies and returns again and again behind the real edge, with real programs at both ends."""

from __future__ import annotations

import random
import time

from bothy_kit.demo_check import Screen, on_terminal
from bothy_kit.programs import command
from bothy_kit.spoilable_world import SpoilableWorld, Terms, spoilable_world
from bothy_kit.world_parts import HOST

_DEATHS = 3
_SEED = 20
_AGAIN_S = 60.0
"""An open that met the fault may take ``terminal.open_timeout``; a new node hears of a host within one heartbeat."""


def say(_: str) -> None:
    """The steps of the start are not shown."""


def test_opens_come_back_behind_a_flapping_node_and_no_session_stays_apart() -> None:
    """The gaps are drawn at random: a death or a return falls between the dials of the two sides."""
    chance = random.Random(_SEED)
    with spoilable_world(say, Terms()) as world:
        with on_terminal([command("bothy"), "open", HOST], world.device) as (screen, ended):
            screen.type(b"exec sh\nPS1= PS2=; COUNT=0\n")
            for number in range(1, _DEATHS + 1):
                node, program = list(world.nodes.items())[number % 2]
                program.kill()
                time.sleep(chance.uniform(0, 1))
                opens_again(world)
                program.start()
                time.sleep(chance.uniform(0, 2))
                opens_again(world)
                world.wait_ready(node)
                counts_on(screen, number)
            world.wait_online()
            for _ in range(4):
                assert opened(world), "nothing fails any more"
            screen.type(b"exit 7\n")
            screen.finish()
            assert ended() == 7
        world.check()
        ends = {reason for state, reason in world.sessions().values() if state == "closed"}
        assert ends <= {"process_exited", "open_failed"}


def opens_again(world: SpoilableWorld) -> None:
    """A person tries until a session opens."""
    deadline = time.monotonic() + _AGAIN_S
    while not opened(world):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def opened(world: SpoilableWorld) -> bool:
    """Whether a session opened and was used; one that opens never gets lost."""
    with on_terminal([command("bothy"), "open", HOST], world.device) as (screen, ended):
        screen.type(b"echo o''pen; exit 3\n")
        screen.finish()
        status = ended()
    assert status in {1, 3, 255}
    return status == 3


def counts_on(screen: Screen, number: int) -> None:
    """The session that was open all along counts one further."""
    screen.type(b"COUNT=$((COUNT + 1)); echo co''unt=$COUNT.\n")
    screen.expect(rb"count=%d\." % number)
