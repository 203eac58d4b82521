"""A real Chromium as one person's browser: a page, a virtual authenticator, and all that went wrong in it."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.async_api import CDPSession, ConsoleMessage, Error, Page, async_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = ["--no-sandbox", "--headless=new", "--disable-background-networking"]
_AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
_PATIENCE_MS = 60_000


@dataclass
class Troubles:
    """Errors on the console of a page, of the page or of the browser about it, and errors that nobody caught."""

    _seen: list[str] = field(default_factory=list)
    _allowed: list[str] = field(default_factory=list)

    def allow(self, pattern: str) -> None:
        """What a test brings about is no trouble, also when it was seen already."""
        self._allowed.append(pattern)

    def all(self) -> list[str]:
        """Those that nobody brought about."""
        return [each for each in self._seen if not any(re.search(pattern, each) for pattern in self._allowed)]

    def watch(self, page: Page) -> None:
        """From now on."""
        page.on("console", self._said)
        page.on("pageerror", self._thrown)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._seen.append(f"{message.text} ({message.location['url']})")

    def _thrown(self, error: Error) -> None:
        self._seen.append(str(error))


@dataclass(frozen=True, slots=True)
class Browser:
    """A running browser with one page."""

    page: Page
    devtools: CDPSession
    troubles: Troubles


@asynccontextmanager
async def chromium(profile: Path, *, bypass_csp: bool = False) -> AsyncIterator[Browser]:
    """The Chromium of this machine with a new ``profile`` and no window. ``bypass_csp`` lets a test add scripts."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    assert found, f"this is tried in a real browser, and this machine has none of {', '.join(_NAMES)}"
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            profile, executable_path=found, args=_ARGUMENTS, bypass_csp=bypass_csp, timeout=_PATIENCE_MS
        )
        try:
            context.set_default_timeout(_PATIENCE_MS)
            (page,) = context.pages
            troubles = Troubles()
            troubles.watch(page)
            devtools = await context.new_cdp_session(page)
            await devtools.send("WebAuthn.enable")
            await devtools.send("WebAuthn.addVirtualAuthenticator", {"options": _AUTHENTICATOR})
            yield Browser(page, devtools, troubles)
        finally:
            await context.close()
