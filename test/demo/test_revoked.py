"""A person sits in a real terminal when their device is revoked: one clear line, and the shell on the host is gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bothy_kit.demo_check import on_terminal
from bothy_kit.demo_world import World, running_world
from bothy_kit.programs import ProgramError, ask, command
from bothy_kit.world_parts import HOST, administer, log_in


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running_world(lambda _: None) as running:
        yield running


def test_a_terminal_ends_with_its_device_in_one_line(world: World) -> None:
    invite = administer(world.server, "person", "invite", "Robin")["invite"]
    phone = log_in(world.folder / "phone", world.url, "phone", invite)
    with on_terminal([command("bothy"), "open", HOST], phone) as (screen, ended):
        screen.type(b"echo shell is $$ here\n")
        shell = Path("/proc", os.fsdecode(screen.expect(rb"shell is (\d+) here\r\n")[1]))
        assert shell.exists()
        revoked = ask("bothy", ["devices", "revoke", "phone"], world.device)
        assert "phone" in revoked
        screen.expect(rb"\r\nbothy: closed by the relay: this device was revoked; run bothy logout, [^\r\n]*\r\n")
        screen.finish()
        assert ended() == 255
    world.programs[-1].wait(lambda: not shell.exists())
    with pytest.raises(ProgramError, match="this device was revoked"):
        ask("bothy", ["hosts"], phone)
    assert "was known there no more" in ask("bothy", ["logout"], phone)
    assert HOST in ask("bothy", ["hosts"], world.device)
