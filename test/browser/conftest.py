"""A whole relay for each module, a browser of its own for each test, and nothing on its console."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from bothy_kit.browser import Browser, chromium
from bothy_kit.console_page import PATIENCE_S, policy_reports, sign_in
from bothy_kit.demo_world import World, running_world

expect.set_options(timeout=PATIENCE_S * 1000)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running_world(lambda _: None) as running:
        yield running


@pytest.fixture
async def browser(world: World, tmp_path: Path) -> AsyncIterator[Browser]:
    """Signed in by nobody; the test fails for any error on the console and any report of a broken policy."""
    before = policy_reports(world)
    async with chromium(tmp_path / "profile") as opened:
        yield opened
    assert opened.troubles.all() == []
    assert policy_reports(world) == before
    world.check()


@pytest.fixture
def device_name(request: pytest.FixtureRequest) -> str:
    """What the browser of this test is called at the relay."""
    return str(request.node.name).removeprefix("test_")[:60]


@pytest.fixture
async def signed_in(world: World, browser: Browser, device_name: str) -> Browser:
    """Robin's, by the link of the demo."""
    await sign_in(browser.page, world.link(), device_name)
    return browser
