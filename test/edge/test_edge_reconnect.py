"""``bothy`` on a pseudo-terminal loses the node that relays it, and the shell goes on by way of the other one."""

from __future__ import annotations

from bothy_kit.demo_check import opened
from bothy_kit.demo_world import World, running_world


def say(_: str) -> None:
    """The steps of the start are not shown."""


def kill_relay(world: World) -> None:
    """The node that relays ends without a word."""
    (program,) = (
        program
        for node, program in zip(world.nodes, world.programs, strict=False)
        if node.gauge("bothy_terminal_relay_pairs") == 1
    )
    program.kill()


def test_a_terminal_survives_its_node() -> None:
    with running_world(say) as world, opened(world) as (screen, ended):
        screen.type(b"exec sh\nPS1= PS2=; kept=shell; echo st''arted\n")
        screen.expect(rb"started\r\n")
        kill_relay(world)
        screen.resize(91, 31)
        screen.type(b"echo the same $kept; stty size\n")
        screen.expect(rb"the same shell\r\n31 91\r\n")
        screen.type(b"exit 7\n")
        screen.finish()
        assert ended() == 7
