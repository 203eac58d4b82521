"""The demo as a person meets it: it works, it stops, and it leaves nothing, however it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DEMO = [sys.executable, "-m", "bothy_kit.demo"]
READY = "Ctrl-C stops everything."


@contextmanager
def demo(*words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*DEMO, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def read_until_ready(program: subprocess.Popen[str]) -> str:
    """What it printed. Fails with it when the demo ends before it is ready."""
    printed = ""
    for line in program.stdout:
        printed += line
        if READY in line:
            return printed
    pytest.fail(f"the demo ended:\n{printed}")


def descendants(pid: int) -> set[int]:
    """All processes below one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:  # it has just ended
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in found | {pid}} - found:
        found |= more
    return found


def living(pids: set[int]) -> dict[int, str]:
    found = {}
    for pid in pids:
        try:
            found[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found


def wait_until_gone(pids: set[int], folder: Path) -> None:
    deadline = time.monotonic() + 30
    while living(pids) or folder.exists():
        assert time.monotonic() < deadline, f"left behind: {living(pids)} {folder if folder.exists() else ''}"
        time.sleep(0.05)


def test_demo_check_passes() -> None:
    with demo("--check") as program:
        printed = program.communicate(timeout=180)[0]
    assert program.returncode == 0, printed
    for step in (
        "open: ",
        "resize: ",
        "receive: 200,000 bytes",
        "send: 200,000 bytes",
        "echo: ",
        "exit: the device saw status 7",
    ):
        assert step in printed
    assert "nothing is left behind" in printed


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_demo_leaves_nothing(end: signal.Signals) -> None:
    """A session is open while the demo ends: its shell and the person's program go too, or end by themselves."""
    with demo() as program:
        printed = read_until_ready(program)
        home = re.search(r"BOTHY_HOME=(\S+) (\S+) open (\S+)", printed)
        folder = Path(home[1]).parent
        master, slave = os.openpty()
        with subprocess.Popen(
            [home[2], "open", home[3]],
            env={**os.environ, "BOTHY_HOME": home[1], "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        ) as person:
            os.close(slave)
            try:
                os.write(master, b"echo $((6 * 7)) answers\n")
                shown = b""
                while b"42 answers" not in shown:
                    shown += os.read(master, 4096)
                pids = descendants(program.pid)
                assert len(pids) > 8
                program.send_signal(end)
                assert program.wait(60) == (-signal.SIGKILL if end is signal.SIGKILL else 0), program.stdout.read()
                wait_until_gone(pids, folder)
            finally:
                person.kill()
                os.close(master)
