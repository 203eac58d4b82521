"""The console as a person uses it, by the names and roles that a screen reader tells: signing in, a terminal, its screen."""

from __future__ import annotations

import asyncio
import re
import time

from playwright.async_api import Locator, Page

from bothy_kit.demo_world import World
from bothy_kit.world_parts import HOST, get

PATIENCE_S = 60.0
_LOOK_S = 0.05


class ScreenError(AssertionError):
    """The terminal does not show what it should; the message holds what it shows."""


async def sign_in(page: Page, link: str, device: str) -> None:
    """By a link with an invite: the browser becomes ``device`` and makes a passkey."""
    await page.goto(link)
    await page.get_by_role("textbox", name="Name of this browser").fill(device)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_role("navigation", name="Pages").wait_for()


async def open_terminal(page: Page) -> Terminal:
    """A new terminal on the world's host: connected, with a screen that can be read and a shell that prompts nothing."""
    before = page.url
    await page.get_by_role("button", name=f"Open a terminal on {HOST}").click()
    await page.wait_for_url(lambda url: url != before and "#terminals/" in url)
    terminal = Terminal(page)
    await terminal.connected()
    await terminal.read_aloud()
    await terminal.type("exec sh\nPS1= PS2=; echo he''re\n")
    await terminal.shows("here$")
    return terminal


def policy_reports(world: World) -> float:
    """How many reports of a broken Content-Security-Policy the nodes have counted."""
    shown = "\n".join(get(node.internal_port, "/metrics")[1] for node in world.nodes if node.ready())
    return sum(map(float, re.findall(r"^bothy_page_reports\S* (\S+)$", shown, re.MULTILINE)))


class Terminal:
    """The terminal in front."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._panel = page.get_by_role("tabpanel")
        self._keys = self._panel.get_by_role("textbox", name="Terminal input")
        self.status = self._panel.get_by_role("group", name="Status of the terminal")
        self.state = self._panel.get_by_role("group", name="State of the terminal")

    @property
    def session_id(self) -> str:
        """Its session, as the address of the page has it."""
        return self._page.url.rpartition("/")[2]

    async def connected(self) -> None:
        """Until it is."""
        await self.status.get_by_text("connected", exact=True).wait_for()

    async def read_aloud(self, *, on: bool = True) -> None:
        """Give a screen reader the rows, which is how they are read here."""
        button = self._panel.get_by_role("button", name="Screen reader")
        if (await button.get_attribute("aria-pressed") == "true") != on:
            await button.click()
        await self.focus()

    async def focus(self) -> None:
        """Keys go to the program."""
        await self._keys.focus()

    async def type(self, text: str) -> None:
        """Type it, key by key."""
        await self.focus()
        await self._page.keyboard.type(text)

    async def press(self, keys: str) -> None:
        """Press a combination, like ``Control+C``."""
        await self.focus()
        await self._page.keyboard.press(keys)

    async def paste_event(self, text: str) -> None:
        """A paste that comes as an event alone, as from a menu."""
        await self._carry(text, "new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })")

    async def drop(self, text: str) -> None:
        """Text that the mouse carries here from elsewhere."""
        await self._carry(text, "new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })")

    async def _carry(self, text: str, event: str) -> None:
        script = f"""(element, text) => {{
            const data = new DataTransfer();
            data.setData("text/plain", text);
            element.dispatchEvent({event});
        }}"""
        await self._keys.evaluate(script, text)

    async def rows(self) -> list[str]:
        """What the screen shows, without the blanks at the end of each row."""
        rows = await self._panel.get_by_role("listitem").all_text_contents()
        return [row.replace("\N{NO-BREAK SPACE}", " ").rstrip() for row in rows]

    async def shows(self, pattern: str) -> re.Match[str]:
        """Until the screen shows ``pattern`` (``^`` and ``$`` are ends of a row). Raises :class:`ScreenError`."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := re.search(pattern, shown := "\n".join(await self.rows()), re.MULTILINE)) is None:
            if time.monotonic() > deadline:
                status = await self.status.text_content()
                raise ScreenError(f"{pattern!r} did not come; {status}; the screen shows\n{shown}")
            await asyncio.sleep(_LOOK_S)
        return found

    def button(self, name: str) -> Locator:
        """One of what the person can do about the state of the terminal."""
        return self.state.get_by_role("button", name=name)
