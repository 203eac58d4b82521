"""Every page of the console, by keyboard alone and as pictures, dark and light, which stay in ``screenshots``."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from bothy_kit.console_page import Terminal, open_terminal
from bothy_kit.world_parts import HOST

PICTURES = Path(__file__).with_name("screenshots")
PARTS = {
    "nodes": "Drain",
    "hosts": HOST,
    "sessions": HOST,
    "unpaired": "Hosts alone",
    "audit": "session",
    "persons": "Robin",
}
"""What a page shows when it is there."""
MOST_TABS = 60


@pytest.mark.parametrize("scheme", ["dark", "light"])
async def test_each_page_has_its_picture(world, browser, scheme):
    page = browser.page
    await page.emulate_media(color_scheme=scheme)

    async def picture(name):
        PICTURES.mkdir(exist_ok=True)
        await expect(page.get_by_text("Loading...")).to_have_count(0)
        await page.screenshot(path=PICTURES / f"{name}-{scheme}.png")

    await page.goto(world.page)
    await page.get_by_role("button", name="Sign in with a passkey").wait_for()
    await picture("sign-in")
    await page.goto("about:blank")
    await page.goto(world.link())
    await page.get_by_role("button", name="Sign in", exact=True).wait_for()
    await picture("invited")
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_role("button", name=f"Open a terminal on {HOST}").wait_for()
    await picture("hosts")

    terminal = await open_terminal(page)
    await terminal.type(COLOURS + "\n")
    await terminal.shows("^shown$")
    await picture("terminal")
    await terminal.press("Control+Shift+F")
    await page.get_by_role("searchbox", name="Search in the terminal").fill("shown")
    await picture("search")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Close the terminal").click()
    await terminal.state.wait_for()
    await picture("closing")
    await terminal.button("Cancel").click()

    await page.get_by_role("link", name="Hosts").click()
    await page.get_by_role("list", name="Your sessions").wait_for()
    await picture("hosts-with-sessions")
    await page.get_by_role("link", name="Account").click()
    await page.get_by_text("this browser", exact=True).wait_for()
    await picture("account")
    await page.get_by_role("link", name="Operate").click()
    for part, shown in PARTS.items():
        await page.goto(f"{world.page}/#operate/{part}")
        await page.get_by_role("main").get_by_text(shown).locator("visible=true").first.wait_for()
        await picture(f"operate-{part}")
    await page.set_viewport_size({"width": 390, "height": 844})
    session = f"terminals/{terminal.session_id}"
    for name, shown in {"hosts": HOST, "account": "this browser", "operate/nodes": "Drain", session: "shown"}.items():
        await page.goto(f"{world.page}/#{name}")
        await page.get_by_role("main").get_by_text(shown).locator("visible=true").first.wait_for()
        await picture(f"narrow-{name.partition('/')[0]}")


async def test_everything_goes_by_keyboard_alone(world, browser):
    page = browser.page
    await page.goto(world.link())
    await expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_focused()
    await page.keyboard.press("Enter")
    await page.get_by_role("navigation", name="Pages").wait_for()
    await tab_to(page, page.get_by_role("button", name=f"Open a terminal on {HOST}"))
    await page.keyboard.press("Enter")
    terminal = Terminal(page)
    await terminal.connected()
    await expect(page.get_by_role("textbox", name="Terminal input")).to_be_focused()
    await page.keyboard.type("exec sh\n")
    await page.keyboard.press("Control+Shift+E")
    await expect(page.get_by_role("tab", name=HOST)).to_be_focused()
    await tab_to(page, page.get_by_role("button", name="Screen reader"))
    await page.keyboard.press("Enter")
    await tab_to(page, page.get_by_role("tab", name=HOST), keys="Shift+Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("textbox", name="Terminal input")).to_be_focused()
    await page.keyboard.type("echo $((6 * 7)) answers\n")
    await terminal.shows("42 answers$")
    await page.keyboard.press("Control+Shift+E")
    await tab_to(page, page.get_by_role("button", name="Close the terminal"))
    await page.keyboard.press("Enter")
    await tab_to(page, terminal.button("End the session"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No terminal is open")).to_be_visible()
    await expect(page.get_by_role("status", name="Announcements")).to_contain_text(f"The session on {HOST} has ended.")


async def tab_to(page, target, keys="Tab"):
    for _ in range(MOST_TABS):
        if await target.evaluate("(element) => element === document.activeElement"):
            return
        await page.keyboard.press(keys)
    raise AssertionError(f"{target} is not reached by keyboard")


COLOURS = (
    "clear; for n in 0 1 2 3 4 5 6 7; do printf '\\033[3%dm colour %d \\033[9%dm bright \\033[0m\\033[4%dm ground \\033[0m\\n'"
    " $n $n $n $n; done; ls --color=always -l / | head -12; echo sh''own"
)
