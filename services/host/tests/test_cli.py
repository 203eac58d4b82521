"""The real program as a child process."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import click
import pytest
from click.testing import CliRunner

from bothy_host import cli, processes, rest, state
from bothy_wire import frames

PROGRAM = [sys.executable, "-c", "from bothy_host.cli import main; main()"]


class Result:
    def __init__(self, exit_code: int, output: str) -> None:
        self.exit_code = exit_code
        self.output = output


def plainly(*arguments: str, given: str = "") -> Result:
    """The whole entry point, with what it prints and its exit status."""
    runner = CliRunner()
    with runner.isolation(input=given) as (_, _, output), mock.patch.object(sys, "argv", ["bothy-host", *arguments]):
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Result(ended.value.code, output.getvalue().decode())


def called(tmp_path, *arguments, given=""):
    config = tmp_path / "host.toml"
    if not config.exists():
        config.write_text(f'state_dir = "{tmp_path}/state"\n[profile.shell]\nusers = ["alex"]\n')
    return plainly("--config", str(config), *arguments, given=given)


@pytest.fixture
def paired(monkeypatch):
    asked = []

    def pair(audience, code, **_):
        asked.append((audience, code))
        return state.State(
            audience=audience,
            host_id=__import__("uuid").UUID(int=1),
            name="lab-1",
            pairing_seq=1,
            join="j",
            signing_key=bytes(32),
            channel_key=bytes(32),
        ), "pending"

    monkeypatch.setattr(rest, "pair", pair)
    return asked


def test_version_names_the_protocol():
    result = plainly("--version")
    assert re.fullmatch(r"bothy-host \S+, protocol 1 to 1\n", result.output)


def test_pair_prints_name_state_and_fingerprint(tmp_path, paired):
    result = called(tmp_path, "pair", "https://Relay.example.com:443/", given="  the-code \n")
    assert result.exit_code == 0
    assert paired == [("https://relay.example.com", "the-code")]
    assert "lab-1" in result.output
    assert "pending" in result.output
    assert re.search(r"SHA256:[\w+/]{43}", result.output)
    assert state.load(tmp_path / "state").name == "lab-1"


def test_a_code_may_be_an_argument(tmp_path, paired):
    assert called(tmp_path, "pair", "https://relay.example.com", "code").exit_code == 0
    assert paired[0][1] == "code"


@pytest.mark.parametrize(
    ("url", "given", "message"),
    [
        (
            "relay.example.com",
            "code",
            "bothy-host: relay.example.com is no address of a relay; one looks like https://",
        ),
        ("https://relay.example.com:99999", "code", "is no address of a relay; one looks like https://"),
        ("https://relay.example.com/app", "code", "only the address"),
        ("https://relay.example.com", "\n", "a pairing code is needed"),
    ],
)
def test_wrong_addresses_and_no_code(tmp_path, paired, url, given, message):
    result = called(tmp_path, "pair", url, given=given)
    assert result.exit_code == 1
    assert message in result.output
    assert not paired


def test_a_failed_pairing_leaves_the_old_one(tmp_path, paired, monkeypatch):
    called(tmp_path, "pair", "https://relay.example.com", "code")

    def refuse(*_, **__):
        raise rest.PairError("the pairing code is wrong")

    monkeypatch.setattr(rest, "pair", refuse)
    result = called(tmp_path, "pair", "https://other.example.com", "code")
    assert (result.exit_code, result.output) == (1, "bothy-host: the pairing code is wrong\n")
    assert state.load(tmp_path / "state").audience == "https://relay.example.com"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("", "host.toml: no profile is configured, so there is nothing to run; add a table like [profile.shell]"),
        ("require_local_confirm = true\n", "require_local_confirm"),
        ('[profile.shell]\nusers = ["alex"]\n', "not paired"),
        ('authorized_devices = "/no/such"\n[profile.shell]\nusers = ["alex"]\n', "/no/such cannot be read"),
        ("servr = 1\n", "did you mean server"),
    ],
)
def test_run_refuses_what_cannot_work(tmp_path, settings, message):
    (tmp_path / "host.toml").write_text(f'state_dir = "{tmp_path}/state"\n{settings}')
    result = called(tmp_path, "run")
    assert result.exit_code == 1
    assert message in result.output
    assert result.output.startswith("bothy-host: ")
    assert result.output.count("\n") == 1


def test_not_paired_advises_no_code_on_the_command_line(tmp_path):
    assert called(tmp_path, "run").output.endswith("this host is not paired; run 'bothy-host pair URL'\n")


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", [[], ["pair"], ["run"]])
def test_help_needs_no_settings(tmp_path, command, option):
    (tmp_path / "host.toml").write_text("servr = 1\n")
    result = called(tmp_path, *command, option)
    assert result.exit_code == 0
    assert result.output.startswith("Usage: bothy-host")
    assert "..." not in result.output.replace("[ARGS]...", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pair"], "Missing argument 'URL'. (bothy-host pair --help explains)"),
        (["piar"], "No such command 'piar'."),
        (["run", "--fast"], "No such option '--fast'."),
    ],
)
def test_usage_is_one_line_and_status_2(tmp_path, arguments, message):
    result = called(tmp_path, *arguments)
    assert result.exit_code == 2
    assert result.output.startswith(f"bothy-host: {message}")
    assert result.output.count("\n") == 1


def test_without_a_command_it_is_the_help():
    result = plainly()
    assert result.exit_code == 2
    assert "Commands:" in result.output


def test_giving_up_at_the_prompt_is_one_line(tmp_path, monkeypatch):
    def interrupted() -> str:
        raise click.Abort

    monkeypatch.setattr(cli, "_ask_code", interrupted)
    result = called(tmp_path, "pair", "https://relay.example.com")
    assert (result.exit_code, result.output) == (130, "bothy-host: interrupted\n")


def test_the_settings_may_name_the_only_relay(tmp_path, paired):
    (tmp_path / "host.toml").write_text('server = "https://relay.example.com"\n')
    result = called(tmp_path, "pair", "https://other.example.com", "code")
    assert "https://other.example.com: the settings name another relay" in result.output
    assert not paired


async def _run(tmp_path: Path, text: str) -> asyncio.subprocess.Process:
    config = tmp_path / "host.toml"
    config.write_text(f'state_dir = "{tmp_path}"\n{text}')
    return await asyncio.create_subprocess_exec(
        *PROGRAM, "--config", str(config), "run", stderr=asyncio.subprocess.PIPE, env=os.environ | {"CANARY": "canary"}
    )


async def test_exit_status_3_says_what_to_do(server, prepared, tmp_path, base_settings):
    server.refuse_control = 4112
    process = await _run(tmp_path, base_settings)
    _, output = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 3
    assert b"stopped for good" in output
    assert b"pair this host again" in output


async def test_a_second_run_is_refused_and_sigterm_ends_everything(server, prepared, tmp_path, base_settings):
    process = await _run(tmp_path, base_settings)
    await server.reported()
    second = await asyncio.to_thread(
        subprocess.run, [*PROGRAM, "--config", tmp_path / "host.toml", "run"], capture_output=True, check=False
    )
    assert second.returncode == 1
    assert b"another bothy-host uses it" in second.stderr
    device, side = await prepared.session()
    await device.open(side)
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    await device.type(b"echo pid=$$.; sleep 9999\n")
    await device.changes.until(lambda: re.search(rb"pid=\d+\.", device.output))
    shell = int(re.search(rb"pid=(\d+)\.", device.output)[1])
    process.send_signal(signal.SIGTERM)
    _, output = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 0
    assert not processes.members(shell)
    for secret in (prepared.state.signing_key, prepared.state.channel_key, prepared.state.join.encode()):
        assert secret not in output


def test_the_doctor_names_each_fault_with_its_fix(tmp_path):
    result = called(tmp_path, "doctor")
    assert result.exit_code == 1
    assert re.search(r"^failed profile shell +there is no account alex on this host$", result.output, re.MULTILINE)
    assert re.search(r"^ +fix: create it", result.output, re.MULTILINE)
    assert re.search(r"^unseen relay +this host is not paired$", result.output, re.MULTILINE)
