"""What ends a terminal in the browser, and what it then says: its host, its device, another page."""

from __future__ import annotations

import functools
import http.server
import threading
from contextlib import contextmanager

import pytest
from playwright.async_api import Error, expect

from bothy_kit.browser import chromium
from bothy_kit.console_page import open_terminal, policy_reports
from bothy_kit.eventually import eventually
from bothy_kit.world_parts import HOST
from bothy_wire.limits import STREAM_SUBPROTOCOL, stream_path

REFUSED = r"status of 40[139]"
CUT = r"ERR_INCOMPLETE_CHUNKED_ENCODING|WebSocket connection to .* failed"
DIAL = """([url, protocol]) => new Promise((resolve) => {
    const socket = new WebSocket(url, protocol);
    socket.onmessage = ({ data }) => { resolve(data); socket.close(); };
    socket.onclose = ({ code }) => resolve(code);
})"""


async def test_a_host_that_is_disabled_says_so(world, signed_in):
    terminal = await open_terminal(signed_in.page)
    world.bothy("hosts", "disable", HOST)
    try:
        await terminal.status.get_by_text("ended", exact=True).wait_for()
        await expect(terminal.state).to_contain_text("disabled")
        await signed_in.page.get_by_role("link", name="Hosts").click()
        await expect(signed_in.page.get_by_role("listitem", name=HOST)).to_contain_text("disabled")
    finally:
        enable_host(world)
    await expect(signed_in.page.get_by_role("button", name=f"Open a terminal on {HOST}")).to_be_enabled()


async def test_a_browser_that_is_revoked_says_so_and_asks_to_sign_in(world, signed_in, device_name):
    signed_in.troubles.allow(REFUSED)
    signed_in.troubles.allow(CUT)
    page = signed_in.page
    await open_terminal(page)
    world.bothy("devices", "revoke", device_name)
    await page.get_by_role("button", name="Sign in with a passkey").wait_for()
    await expect(page.get_by_role("main")).to_contain_text("revoked")
    await page.get_by_role("textbox", name="Invite code").fill(world.link().partition("=")[2])
    await page.get_by_role("button", name="Use the invite").click()
    await page.get_by_role("link", name="Hosts").click()
    terminal = await open_terminal(page)
    await terminal.type("echo $((6 * 7)) answers\n")
    await terminal.shows("^42 answers$")


async def test_a_program_that_ends_tells_its_status(signed_in):
    terminal = await open_terminal(signed_in.page)
    await terminal.type("exit 7\n")
    await terminal.status.get_by_text("ended", exact=True).wait_for()
    await expect(terminal.state).to_contain_text("The program ended with status 7.")
    await terminal.button("Close").click()
    await expect(signed_in.page.get_by_text("No terminal is open")).to_be_visible()


async def test_a_page_of_another_origin_opens_no_socket_and_reads_nothing(world, signed_in, tmp_path):
    signed_in.troubles.allow("WebSocket connection to|CORS policy|ERR_FAILED|favicon")
    page = signed_in.page
    terminal = await open_terminal(page)
    socket = [world.page.replace("http", "ws") + stream_path(terminal.session_id), STREAM_SUBPROTOCOL]
    assert "stream.hello" in await page.evaluate(DIAL, socket)
    with foreign_page(tmp_path) as foreign:
        await page.goto(foreign)
        assert await page.evaluate(DIAL, socket) == 4101
        with pytest.raises(Error, match="Failed to fetch"):
            await page.evaluate("(url) => fetch(`${url}/api/v1/me`)", world.page)


async def test_what_breaks_the_policy_of_the_page_is_seen(world, tmp_path):
    """What the other tests look for would be there."""
    before = policy_reports(world)
    async with chromium(tmp_path / "profile") as browser:
        await browser.page.goto(world.page)
        with pytest.raises(Error, match="TrustedHTML"):
            await browser.page.evaluate("() => { document.body.innerHTML = '<p>text</p>'; }")
        await eventually(lambda: policy_reports(world) > before)
        assert any("TrustedHTML" in each for each in browser.troubles.all())


def enable_host(world):
    """Its service has stopped for good when it was disabled."""
    world.bothy("hosts", "enable", HOST)
    world.programs[-1].stop()
    world.programs[-1].start()
    world.wait_online()


@contextmanager
def foreign_page(folder):
    """The address of an empty page of somebody else."""
    (folder / "index.html").write_text("<!doctype html><title>elsewhere</title>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
