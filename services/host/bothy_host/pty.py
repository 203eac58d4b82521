"""One program on its own pseudo-terminal, driven by callbacks of the event loop.

Input and output move independently: a program that takes no input never stops its output from being read. The end is the
program's exit plus what it had printed until then; while it runs we hold the terminal open ourselves, since Linux says EIO as soon as nobody has it open, even for a moment. Jobs
that a program leaves behind by exiting are its own business (``docs/adr/0005-background-jobs.md``).
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from collections import deque
from typing import Protocol

from bothy_host import enter, processes
from bothy_host.program import Program

READ_BYTES = 64 * 1024
"""Most bytes of one read; a session that prints a lot must let the others have their turn."""
_KERNEL_BYTES = 1024 * 1024
"""More than the kernel ever holds back for one pseudo-terminal; ends the last read although a background job prints on."""


class SpawnError(Exception):
    """The program could not be started. The message is one line."""


class Listener(Protocol):
    """What a pseudo-terminal tells its session."""

    def wants(self) -> int:
        """How many bytes of output may be read now; 0 stops reading until :meth:`Pty.read_on`."""

    def printed(self, data: bytes) -> None:
        """The program printed."""

    def taken(self, count: int) -> None:
        """The program's terminal took that many bytes of input."""

    def started(self) -> None:
        """The program runs."""

    def failed(self, reason: str) -> None:
        """The program could not be started; :meth:`exited` follows."""

    def exited(self, status: int) -> None:
        """The program ended and all it printed was told before. 128 plus the number when a signal ended it."""


class Pty:
    """A running program. Whoever made it awaits :meth:`end`, unless the program ended by itself."""

    def __init__(self, program: Program, columns: int, rows: int, listener: Listener) -> None:
        """Raises :class:`SpawnError`; later failures reach :meth:`Listener.failed`."""
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._input: deque[memoryview] = deque()
        self._reading = self._writing = False
        self._printing = True
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._report, report = os.pipe()
        try:
            # Our own hold on the terminal: a program that closes its last descriptor and opens /dev/tty again goes on.
            self._master, self._slave = os.openpty()
            try:
                os.set_blocking(self._master, False)
                self.resize(columns, rows)
                self._process = _start(program, self._slave, report)
            except BaseException:
                self._hang_up()
                raise
        except OSError as error:
            os.close(self._report)
            raise SpawnError(f"{program.path}: {error.strerror}") from error
        finally:
            os.close(report)
        self._exit = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._exit, self._on_exit)
        self._loop.add_reader(self._report, self._on_report)
        self.read_on()

    @property
    def pid(self) -> int:
        """The program's process, which also leads its process session."""
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Type. What does not fit now follows when there is room, in order."""
        self._input.append(memoryview(data))
        if not self._writing:
            self._write()

    def forget_input(self) -> int:
        """Drop what the terminal has not taken yet; returns how many bytes."""
        dropped = sum(len(part) for part in self._input)
        self._input.clear()
        self._stop_writing()
        return dropped

    def resize(self, columns: int, rows: int) -> None:
        """Set the size; the kernel tells the program. After the end it does nothing."""
        with contextlib.suppress(OSError, ValueError):
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_on(self) -> None:
        """Ask the listener again how much it wants."""
        wanted = self._printing and self._listener.wants() > 0
        if wanted and not self._reading:
            self._loop.add_reader(self._master, self._on_readable)
        elif self._reading and not wanted:
            self._loop.remove_reader(self._master)
        self._reading = wanted

    async def end(self, grace: float) -> None:
        """End everything in the program's process session: HUP, after ``grace`` seconds KILL, then reap.

        What we may not signal (it became another user's) gets the hang-up of the terminal, and ``grace`` seconds more.
        """
        await processes.end_session(self.pid, grace)
        if not self._ended.done():
            self._hang_up()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._ended), grace)

    def _on_report(self) -> None:
        reason = os.read(self._report, 4096).decode(errors="replace")
        self._loop.remove_reader(self._report)
        os.close(self._report)
        self._report = -1
        if reason:
            self._listener.failed(reason)
        else:
            self._listener.started()

    def _on_readable(self) -> None:
        wants = self._listener.wants()
        if wants > 0:
            self._read(min(wants, READ_BYTES))
        self.read_on()

    def _read(self, size: int) -> int:
        """Bytes read; 0 when there is nothing now or nothing any more."""
        if not self._printing:
            return 0
        try:
            data = os.read(self._master, size)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            data = b""
        if not data:
            self._printing = False
            return 0
        self._listener.printed(data)
        return len(data)

    def _write(self) -> None:
        taken = 0
        while self._input:
            try:
                count = os.write(self._master, self._input[0])
            except BlockingIOError:
                break
            except OSError:  # there is no terminal any more, and nobody to type to
                count = len(self._input[0])
            taken += count
            if count < len(self._input[0]):
                self._input[0] = self._input[0][count:]
            else:
                self._input.popleft()
        if self._input and not self._writing:
            self._loop.add_writer(self._master, self._write)
            self._writing = True
        elif not self._input:
            self._stop_writing()
        if taken:
            self._listener.taken(taken)

    def _stop_writing(self) -> None:
        if self._writing:
            self._loop.remove_writer(self._master)
            self._writing = False

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._exit)
        os.close(self._exit)
        code = self._process.wait()
        self._ended.set_result(None)
        if self._report >= 0:
            self._on_report()
        left = _KERNEL_BYTES
        while left > 0 and (count := self._read(min(left, READ_BYTES))):
            left -= count
        self._hang_up()
        self._listener.exited(code if code >= 0 else 128 - code)

    def _hang_up(self) -> None:
        """Let go of the terminal; whoever still has it is told by the kernel."""
        if self._master < 0:
            return
        self._printing = False
        self.read_on()
        self.forget_input()
        os.close(self._master)
        os.close(self._slave)
        self._master = self._slave = -1


def _start(program: Program, slave: int, report: int) -> subprocess.Popen[bytes]:
    account = program.account
    switch = f"{account.uid}:{account.gid}:{','.join(map(str, account.groups))}" if account.switch else ""
    command = (str(report), switch, program.folder or "", program.path, *program.argv)
    return subprocess.Popen(  # noqa: S603 - the program that the operator configured
        (sys.executable, "-I", "-S", enter.__file__, *command),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=program.environment,
        cwd="/",
        pass_fds=(report,),
        start_new_session=True,
    )


def exit_text(status: int) -> str:
    """An exit status in words for a log."""
    if status > 128 and status - 128 in set(signal.Signals):
        return f"ended by {signal.Signals(status - 128).name}"
    return f"exited with {status}"
