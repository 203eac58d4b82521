from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bothy_kit.processes import reserved_port, scratch, start, stop

PARENT = """
import sys
from bothy_kit.processes import start
print(start(["sleep", "600"]).pid, flush=True)
input()
"""


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "a child outlived its parent"
        time.sleep(0.01)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_child_ends_with_its_parent(end: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        while Path(f"/proc/{child}/cmdline").read_bytes() != b"sleep\x00600\x00":
            time.sleep(0.01)
        parent.send_signal(end)
        parent.wait(10)
    wait_until_gone(child)


def test_stop_kills_a_group_that_does_not_listen(tmp_path: Path) -> None:
    script = 'trap "" TERM; sleep 600 & echo $! > "$0"; echo ready; wait'
    with (tmp_path / "log").open("wb") as log:
        process = start(["/bin/sh", "-c", script, tmp_path / "grandchild"], output=log)
    while b"ready" not in (tmp_path / "log").read_bytes():
        time.sleep(0.01)
    assert stop(process, within_s=0.1) == -signal.SIGKILL
    assert stop(process) == -signal.SIGKILL
    wait_until_gone(int((tmp_path / "grandchild").read_text()))


def test_start_gives_a_terminal_to_its_command() -> None:
    master, slave = os.openpty()
    try:
        process = start(["/bin/sh", "-c", "echo from the terminal > /dev/tty"], stdin=slave)
        os.close(slave)
        assert process.wait(10) == 0
        assert os.read(master, 100) == b"from the terminal\r\n"
    finally:
        os.close(master)


def test_reserved_port_is_for_one_server() -> None:
    with reserved_port() as port, socket.create_server(("127.0.0.1", port)) as server:
        socket.create_connection(server.getsockname()).close()
        with reserved_port() as other:
            assert other != port


def test_scratch_goes_with_its_block() -> None:
    def interrupted() -> None:
        with scratch("bothy-test") as folder:
            made.append(folder)
            (folder / "inner").mkdir()
            raise KeyboardInterrupt

    made: list[Path] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(str(made[0])) < 80
    assert not made[0].exists()
