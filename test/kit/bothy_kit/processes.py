"""Processes and folders that never outlive the program that made them, however it ends.

The kernel ends a child when the *thread* that started it ends: start children from a thread that outlives them.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_TETHER = Path(__file__).with_name("tether.py")
_SHORT = 48
"""A folder of at most this many characters leaves room for a socket name in the 107 that Linux allows."""
_SWEEP = 'read -r _; while [ -e "$1" ]; do rm -rf "$1" 2>/dev/null || sleep 0.1; done'


@dataclass(frozen=True, slots=True)
class Account:
    """An account to drop to."""

    uid: int
    gid: int
    name: str
    home: str


def unprivileged() -> Account | None:
    """The account that services run as when we are root; ``None`` when we are not."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid, entry.pw_name, entry.pw_dir)


def reachable(path: Path) -> bool:
    """Whether any account may read ``path`` and pass its parent folders."""
    return bool(path.stat().st_mode & 0o004) and all(parent.stat().st_mode & 0o001 for parent in path.parents)


def start(
    command: Sequence[str | Path],
    *,
    account: Account | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int | None = subprocess.DEVNULL,
    output: IO[bytes] | int | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start ``command`` as a direct child in a session of its own, so that Ctrl-C reaches us alone.

    ``output`` takes both standard output and standard error. The child gets ``death_signal`` when we end. A terminal
    as ``stdin`` becomes its controlling terminal.
    """
    uid, gid = (account.uid, account.gid) if account else (-1, -1)
    tether = [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), str(int(death_signal)), str(uid), str(gid)]
    return subprocess.Popen(
        [*tether, *map(str, command)],
        env=None if env is None else dict(env),
        cwd=cwd,
        stdin=stdin,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        start_new_session=True,
        pass_fds=pass_fds,
    )


def stop(process: subprocess.Popen[bytes], by: signal.Signals = signal.SIGTERM, within_s: float = 20) -> int:
    """Send ``by``, wait, kill the whole process group after ``within_s``; the exit status. Stopping twice does nothing."""
    if process.poll() is None:
        process.send_signal(by)
    try:
        return process.wait(within_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port on loopback that nobody is given while the block runs, but that a server may listen on by its number."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # bound, never listening: a server may join it
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A new private folder with a short path; it goes with the block, and a small shell removes it if we are killed."""
    home = Path(tempfile.gettempdir())
    if len(str(home)) > _SHORT or not all(part.stat().st_mode & 0o001 for part in (home, *home.parents)):
        home = Path("/tmp")  # short, and every account passes it
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=home))
    sweeper = subprocess.Popen(
        ["/bin/sh", "-c", _SWEEP, "sh", str(folder)], stdin=subprocess.PIPE, start_new_session=True, cwd="/"
    )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        sweeper.communicate()
