"""The wiring of the service; the program around it is in ``test_cli.py``."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from bothy_host import service
from bothy_host.settings import SettingsError, parse
from bothy_host.state import StateError
from bothy_wire import frames

FILE = Path("host.toml")


@pytest.fixture
def settings(private, base_settings):
    return parse(f'state_dir = "{private}"\n{base_settings}', "test")


def test_what_cannot_work_is_said_before_it_runs(base_settings):
    service.check(parse(base_settings, "test"), FILE)
    with pytest.raises(SettingsError, match=r"host\.toml: no profile is configured.*\[profile\.shell\]"):
        service.check(parse("", "test"), FILE)
    with pytest.raises(SettingsError, match=r"host\.toml: require_local_confirm"):
        service.check(parse("require_local_confirm = true\n" + base_settings, "test"), FILE)


async def test_without_a_pairing_it_does_not_run(settings):
    with pytest.raises(StateError, match="not paired"):
        await service.run(settings)


async def test_it_serves_the_relay_that_it_was_paired_with_and_no_other(prepared, private, base_settings):
    other = parse(f'state_dir = "{private}"\nserver = "https://other.example.com"\n{base_settings}', "test")
    with pytest.raises(SettingsError, match="this host is paired with"):
        await service.run(other)


async def test_a_signal_ends_it_and_its_sessions(prepared, server, settings):
    running = asyncio.create_task(service.run(settings))
    await server.reported()
    device, side = await prepared.session()
    await device.open(side)
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running, 20) == 0
    assert await side.until_closed() in (1000, 1006)


async def test_br35_a_machine_that_slept_connects_anew(prepared, server, settings, monkeypatch):
    asleep = asyncio.Event()

    async def watch_sleep(woke):
        await asleep.wait()
        woke()

    monkeypatch.setattr(service, "watch_sleep", watch_sleep)
    running = asyncio.create_task(service.run(settings))
    await server.reported()
    device, side = await prepared.session()
    await device.open(side)
    await device.shows(b"$ ")
    asleep.set()
    await server.changes.until(lambda: len(server.all_heard(frames.HostReport)) == 2)
    device.gone()
    await device.open(await server.side(2))
    assert device.opened[-1].resume == "exact"
    running.cancel()
    assert await asyncio.wait_for(running, 20) == 0


@pytest.mark.parametrize(("code", "advice"), [(4110, "with the newest pairing code"), (4199, "")])
async def test_a_code_that_means_never_ends_it_with_3_and_an_advice(prepared, server, settings, caplog, code, advice):
    server.refuse_control = code
    assert await asyncio.wait_for(service.run(settings), 20) == service.STOPPED_FOR_GOOD
    last = caplog.records[-1].getMessage()
    assert f"({code})" in last
    assert advice in last


async def test_keys_are_fetched_from_the_relay(prepared, server, settings):
    running = asyncio.create_task(service.run(settings))
    await server.reported()
    fresh = type(server.signing).generate_key("Ed25519", auto_kid=True)
    server.signing, server.published = fresh, [fresh]
    device, side = await prepared.session()
    await device.open(side)
    assert server.jwks_reads == 1
    running.cancel()
    assert await asyncio.wait_for(running, 20) == 0
