"""The real program loses its relay in every way, and the terminal goes on."""

import asyncio

import pytest

from bothy_device.connector import Talk
from bothy_device.settings import Wire


async def reached(relay, person):
    """The repaint stands on the screen."""
    await relay.host.until(lambda: relay.host.sizes)
    await person.until(b"\x1bc$ ")
    return person


async def test_a_cut_is_healed_and_what_was_typed_meanwhile_arrives_once(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    await person.type(b"be")
    await relay.host.until(lambda: relay.host.typed == b"be")
    relay.pairs = False
    relay.cut()
    await person.type(b"tween\r")
    await relay.until_dialled(2)
    await relay.pair()
    await relay.host.until(lambda: relay.host.typed == b"between\r")
    await relay.host.exit(3)
    assert await person.ended() == 3
    assert len(relay.requests_of("POST", "/attach")) == 0


async def test_nothing_is_taken_from_the_session_while_the_socket_takes_nothing():
    class Stuck:
        async def wait(self, *_):
            await asyncio.Event().wait()

        receive = send = watch = wait

    taken = []
    talk = Talk(Stuck(), None, lambda: taken.append(1) or [b"x"])
    running = asyncio.create_task(talk.run(Wire()))
    for _ in range(1000):
        talk.stir()
        await asyncio.sleep(0)
    assert len(taken) == 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
