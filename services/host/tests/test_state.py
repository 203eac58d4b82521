from __future__ import annotations

import subprocess
import sys
import uuid

import pytest
from msgspec.structs import replace

from bothy_host.state import Pairing, State, StateError, load, locked, save

STATE = State(
    audience="https://relay.example.com",
    host_id=uuid.UUID(int=7),
    name="lab-1",
    pairing_seq=3,
    join="j",
    signing_key=bytes(32),
    channel_key=bytes(range(32)),
)


def test_what_is_saved_is_loaded_and_private(tmp_path):
    save(tmp_path, STATE)
    assert load(tmp_path) == STATE
    assert (tmp_path / "host.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["host.json"]


async def test_confirm_is_on_the_disk(tmp_path):
    save(tmp_path, STATE)
    pairing = Pairing(tmp_path, STATE)
    await pairing.confirm(pairing_seq=4, join="k")
    assert load(tmp_path) == pairing.state == replace(STATE, pairing_seq=4, join="k")


def test_unpaired_and_damaged_say_what_to_do(tmp_path):
    with pytest.raises(StateError, match="not paired; run"):
        load(tmp_path)
    (tmp_path / "host.json").write_text('{"audience": 1}')
    with pytest.raises(StateError, match="damaged"):
        load(tmp_path)


def test_a_failed_write_keeps_the_old_state(tmp_path):
    save(tmp_path, STATE)
    (tmp_path / "host.json.new").mkdir()
    with pytest.raises(StateError, match="cannot be written"):
        save(tmp_path, replace(STATE, join="k"))
    assert load(tmp_path) == STATE


def test_one_process_at_a_time(tmp_path):
    folder = tmp_path / "state"
    probe = f"from pathlib import Path; from bothy_host import state\nwith state.locked(Path({str(folder)!r})): pass"
    with locked(folder):
        assert folder.stat().st_mode & 0o777 == 0o700
        refused = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
        assert "another bothy-host uses it" in refused.stderr
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0


def test_an_open_folder_is_refused(tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(StateError, match="chmod 700"), locked(tmp_path):
        pass
