"""A terminal in the browser that loses its page, its network, its node or its device, and goes on as the same session."""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager

from bothy_kit.console_page import open_terminal
from bothy_kit.demo_check import on_terminal
from bothy_kit.programs import command
from bothy_kit.world_parts import HOST

OFFLINE = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
NO_NETWORK = r"ERR_INTERNET_DISCONNECTED"
LOST = r"WebSocket connection to .* failed|Failed to load resource: .*(ERR_|50[234])|ERR_INCOMPLETE_CHUNKED_ENCODING"
"""What the browser itself says of a connection that a killed node leaves behind."""


async def test_a_reload_brings_the_same_session_with_its_screen(signed_in):
    terminal = await open_terminal(signed_in.page)
    session = terminal.session_id
    await terminal.type("kept=yes; clear; echo before-$((40+2))\n")
    await terminal.shows("^before-42$")
    await signed_in.page.reload()
    await terminal.connected()
    await terminal.shows("^before-42$")
    await terminal.type("echo kept-is-$kept\n")
    await terminal.shows("^kept-is-yes$")
    assert terminal.session_id == session


async def test_what_was_typed_without_network_arrives_once(signed_in):
    signed_in.troubles.allow(NO_NETWORK)
    signed_in.troubles.allow(LOST)
    terminal = await open_terminal(signed_in.page)
    await terminal.type("count=0; clear\n")
    await signed_in.devtools.send("Network.emulateNetworkConditions", {"offline": True, **OFFLINE})
    await terminal.status.get_by_text("reconnecting", exact=True).wait_for()
    await terminal.type("count=$((count+1)); echo count-is-$count\n")
    await terminal.status.get_by_text("waiting").wait_for()
    assert "count-is-1" not in await terminal.rows()
    await signed_in.devtools.send("Network.emulateNetworkConditions", {"offline": False, **OFFLINE})
    await terminal.connected()
    await terminal.shows("^count-is-1$")
    await terminal.type("echo count-stays-$count\n")
    await terminal.shows("^count-stays-1$")


async def test_a_session_survives_the_node_that_relays_it(world, signed_in):
    signed_in.troubles.allow(LOST)
    terminal = await open_terminal(signed_in.page)
    session = terminal.session_id
    await terminal.type("kept=yes; clear; echo before-$((40+2))\n")
    await terminal.shows("^before-42$")
    index = await asyncio.to_thread(relaying, world)
    with killed(world, index):
        await asyncio.to_thread(world.programs[1 - index].wait, lambda: pairs(world, 1 - index) > 0)
        await terminal.connected()
        await terminal.type("echo kept-is-$kept\n")
        await terminal.shows("^before-42\n(.*\n)*kept-is-yes$")
        assert terminal.session_id == session


async def test_a_session_goes_on_at_the_command_line_and_comes_back(world, signed_in):
    terminal = await open_terminal(signed_in.page)
    first_time = await signed_in.page.get_by_text("First time on").text_content()
    world.bothy("hosts", "trust", HOST, re.search(r"SHA256:\S+", first_time)[0])
    await terminal.type("kept=browser; clear\n")
    with on_terminal([command("bothy"), "attach", terminal.session_id], world.device) as (screen, _):
        await asyncio.to_thread(screen.type, b"echo kept-is-$kept; kept=line\n")
        await asyncio.to_thread(screen.expect, rb"kept-is-browser\r\n")
        await terminal.status.get_by_text("on another device", exact=True).wait_for()
        await terminal.button("Take it back").click()
        await terminal.connected()
        await asyncio.to_thread(screen.expect, rb"another device")
    await terminal.type("echo kept-is-$kept\n")
    await terminal.shows("^kept-is-line$")


async def test_two_terminals_stand_side_by_side(signed_in):
    page = signed_in.page
    first = await open_terminal(page)
    await first.type("clear; echo I am the fi''rst\n")
    await first.shows("^I am the first$")
    await page.get_by_role("link", name="Hosts").click()
    second = await open_terminal(page)
    await second.type("clear; echo I am the sec''ond\n")
    await second.shows("^I am the second$")
    await page.get_by_role("tab").first.click()
    await first.shows("^I am the first$")
    await first.type("echo still he''re\n")
    await first.shows("^I am the first\n(.*\n)*still here$")


def pairs(world, index):
    return world.nodes[index].gauge("bothy_terminal_relay_pairs")


def relaying(world):
    """The index of the node that has the pair, when those of other tests are gone."""
    nodes = range(len(world.nodes))
    world.programs[0].wait(lambda: sum(pairs(world, index) for index in nodes) == 1)
    return next(index for index in nodes if pairs(world, index) == 1)


@contextmanager
def killed(world, index):
    """A node that is gone for the block."""
    program = world.programs[index]
    program.kill()
    try:
        yield
    finally:
        program.start()
        program.wait(world.nodes[index].ready)
        world.wait_online()
