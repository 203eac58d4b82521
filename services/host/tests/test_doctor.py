"""One fault at a time, planted on a machine that is in order."""

from __future__ import annotations

import json
import time

import pytest

from bothy_host import doctor, emulator_link
from bothy_host.doctor import Finding, Verdict, examine
from bothy_host.settings import parse

UNIT = "[Service]\nExecStart=/usr/local/bin/bothy-host run\nKillMode=mixed\nRestartPreventExitStatus=3\n"


class Place:
    """A machine that is in order, until a test spoils it."""

    def __init__(self, machine, folder, settings: str) -> None:
        self.machine = machine
        self.folder = folder
        self.text = f'state_dir = "{folder}"\n{settings}'
        self.file = folder / "host.toml"
        self.unit = folder / "bothy-host.service"
        self.unit.write_text(UNIT)

    async def found(self) -> dict[str, Finding]:
        self.file.write_text(self.text)
        findings = await examine(parse(self.text, "host.toml"), self.file, [self.unit])
        return {each.check: each for each in findings}

    async def failed(self) -> dict[str, str]:
        return {name: each.seen for name, each in (await self.found()).items() if each.verdict is Verdict.FAILED}


@pytest.fixture
def place(prepared, private, base_settings) -> Place:
    return Place(prepared, private, base_settings)


async def test_a_host_in_order_has_no_fault(place, server):
    found = await place.found()
    assert {each.verdict for each in found.values()} == {Verdict.OK}
    assert list(found) == [
        "settings",
        "profile shell",
        "devices",
        "terminal",
        "screen",
        "unit",
        "state",
        "relay",
        "clock",
    ]
    assert server.audience in found["state"].seen
    assert not server.identified, "a service that runs is not taken for a copy"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("users = [", 'users = ["nobody-here", ', "no account nobody-here"),
        ("users = [", 'users = ["@no-such-group", ', "no group no-such-group"),
        ('"/bin/bash"', '"/no/such/shell"', "/no/such/shell cannot be executed"),
    ],
)
async def test_a_profile_that_could_run_nothing_is_named(place, old, new, says):
    line = "profile shell"
    place.text = place.text.replace(old, new)
    assert list(await place.failed()) == [line]
    assert says in (await place.failed())[line]


async def test_settings_without_a_profile(place):
    place.text = place.text.partition("[profile")[0]
    assert list(await place.failed()) == ["settings"]


async def test_files_that_others_may_write(place):
    devices = place.folder / "devices"
    devices.write_text("")
    place.text = f'authorized_devices = "{devices}"\n{place.text}'
    assert await place.failed() == {}
    for path, line in ((devices, "devices"), (place.file, "settings")):
        path.chmod(0o666)
        assert "another account" in (await place.failed())[line]
        path.chmod(0o644)


async def test_a_list_of_devices_that_cannot_be_read(place):
    devices = place.folder / "devices"
    place.text = f'authorized_devices = "{devices}"\n{place.text}'
    assert list(await place.failed()) == ["devices"]
    devices.write_text("no fingerprint\n")
    assert "line 1" in (await place.failed())["devices"]


async def test_a_folder_that_others_may_enter(place):
    place.folder.chmod(0o755)
    assert list(await place.failed()) == ["state"]


async def test_keys_that_are_damaged_or_missing(place):
    path = place.folder / "host.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"channel_key": "c2hvcnQ="}))
    assert list(await place.failed()) == ["state"]
    path.unlink()
    found = await place.found()
    assert "not paired" in found["state"].seen
    assert (found["relay"].verdict, found["clock"].verdict) == (Verdict.UNSEEN, Verdict.UNSEEN)


async def test_a_unit_that_would_start_a_refused_host_again(place):
    place.unit.write_text(UNIT.replace("RestartPreventExitStatus=3\n", ""))
    assert "RestartPreventExitStatus=3" in (await place.failed())["unit"]
    place.unit.unlink()
    assert (await place.found())["unit"].verdict is Verdict.UNSEEN


async def test_a_relay_that_is_away(place, server, unused_tcp_port):
    path = place.folder / "host.json"
    path.write_text(path.read_text().replace(server.audience, f"http://127.0.0.1:{unused_tcp_port}"))
    found = await place.found()
    assert found["relay"].verdict is Verdict.FAILED
    assert found["relay"].fix
    assert found["clock"].verdict is Verdict.UNSEEN


async def test_a_relay_of_another_time(place, server):
    server.protocol = (7, 9)
    assert "protocol 7 to 9" in (await place.failed())["relay"]


async def test_a_clock_that_is_wrong(place, monkeypatch):
    monkeypatch.setattr(doctor, "time", type("Clock", (), {"time": staticmethod(lambda: time.time() - 120)}))
    assert (await place.failed())["clock"].startswith("-120 s")


async def test_without_the_emulator(place, monkeypatch):
    monkeypatch.setattr(emulator_link, "installed", lambda: False)
    assert (await place.found())["screen"].verdict is Verdict.UNSEEN
