"""Our own programs as a person runs them: short commands, and services that a test stops, kills and starts again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bothy_kit.processes import start, stop

_WAIT_S = 60.0
_STEP_S = 0.1
_LOG_LINES = 20


class ProgramError(Exception):
    """Something did not start or ended by itself. The message holds the end of its log."""


class Program:
    """A service. Its log goes on over restarts. It is started by a thread that outlives it."""

    def __init__(self, name: str, words: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        self._words = words
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; whether it is ready is another question."""
        with self.log.open("ab") as log:
            self._process = start(self._words, env=self._environment, output=log, death_signal=signal.SIGTERM)

    @property
    def pid(self) -> int:
        """Its process. Raises :class:`ProgramError` while it does not run."""
        if self._process is None:
            raise ProgramError(f"{self.name} does not run")
        return self._process.pid

    def stop(self, by: signal.Signals = signal.SIGTERM, within_s: float = 20) -> int:
        """Ask it to end, and wait; its exit status."""
        process, self._process = self._process, None
        return 0 if process is None else stop(process, by, within_s)

    def kill(self) -> None:
        """It ends without a word."""
        self.stop(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._process is not None:
            self._process.send_signal(number)

    @property
    def ended(self) -> int | None:
        """The exit status with which it has ended by itself; none while it runs."""
        return None if self._process is None else self._process.poll()

    def check(self) -> None:
        """Raise :class:`ProgramError` when it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
            raise ProgramError(f"{self.name} ended with {self._process.returncode}:\n{tail}")

    def wait(self, done: Callable[[], bool]) -> None:
        """Until ``done``. Raises :class:`ProgramError`."""
        deadline = time.monotonic() + _WAIT_S
        while not done():
            self.check()
            if time.monotonic() > deadline:
                tail = self.log.read_text(errors="replace")[-2000:]
                raise ProgramError(f"{self.name} is not ready after {_WAIT_S:.0f} s; its log ends:\n{tail}")
            time.sleep(_STEP_S)


@contextmanager
def running(name: str, words: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[Program]:
    """A service that runs for the block, with its log in ``folder``."""
    program = Program(name, words, environment, folder / f"{name}.log")
    program.start()
    try:
        yield program
    finally:
        program.stop()


def command(name: str) -> str:
    """The path of one of our programs, as installed beside this Python."""
    return str(Path(sys.executable).with_name(name))


def ask(name: str, words: Sequence[str], environment: Mapping[str, str], line: str = "") -> str:
    """Run a short command; secrets go in as a line of input, since arguments show in the list of processes.

    Raises :class:`ProgramError`.
    """
    run = subprocess.run(
        [command(name), *words],
        env=dict(environment),
        input=f"{line}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=_WAIT_S,
    )
    if run.returncode != 0:
        raise ProgramError(f"{name} {' '.join(words)} ended with {run.returncode}:\n{run.stderr}{run.stdout}")
    return run.stdout


def without_ours(own: Mapping[str, str]) -> dict[str, str]:
    """Our environment without settings of another bothy, and with ``own``."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BOTHY_")} | dict(own)
