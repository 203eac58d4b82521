"""Screens whose emulator runs in another process; when that is late, dead or not installed, the end of the output.

The emulator is native code that reads what programs print. A fault in it must end no session, so it has a process of its own,
one for all sessions of a host. A repaint waits for it, not long; nothing else does, and who prints faster than it reads is not read.
"""

from __future__ import annotations

import atexit
import logging
import select
import socket
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from importlib.util import find_spec

from bothy_host.screen import MakeScreen
from bothy_host.tail import TailScreen

_log = logging.getLogger(__name__)

HEADER = struct.Struct(">BII")
"""Kind, number of the screen, length of what follows."""
SIZE = struct.Struct(">HH")
LENGTH = struct.Struct(">I")
"""The limit of a new screen; also in front of a repaint, the only answer."""
_MODULE = "bothy_host.emulator_process"
_MOST_WAITING = 1024 * 1024
"""Bytes that the process has not taken, before whoever prints more of them waits."""
_LITTLE = 64 * 1024
"""Bytes that a session may print while others print too many."""
_FAR_TOO_MANY = 4 * _MOST_WAITING
"""And before whoever does not wait goes on without it."""
_START_S = 20.0
_TRIAL = b"\r\n" * 30 + b"\x1b]2;trial\x07\x1b]4;1;#000000\x07\x1b[?1049h\x1b[44m\x1b[2J"
"""Each function of the library takes long the first time; better at the start than between somebody's keys."""


class Kind(IntEnum):
    """What the process is asked."""

    NEW = 1
    FEED = 2
    RESIZE = 3
    REPAINT = 4
    CLOSE = 5


class EmulatorProcess:
    """One process; its screens lose their emulator when it dies, and nothing else."""

    def __init__(self, patience: float) -> None:
        """``patience``: seconds that a repaint may take. Raises ``OSError`` when it does not start."""
        self._patience = patience
        self._socket, theirs = socket.socketpair()
        with theirs:
            words = (sys.executable, "-I", "-m", _MODULE, str(theirs.fileno()))
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={}, cwd="/", pass_fds=(theirs.fileno(),)
            )
        self._socket.setblocking(False)
        self._waiting = bytearray()
        self._answers = bytearray()
        self._late = 0  # answers that nobody waits for any more
        self._numbers = 0
        atexit.register(self.stop)
        trial = self.new(4096)
        self.tell(Kind.FEED, trial, _TRIAL)
        if self.repaint(trial, _START_S) is None:
            self.stop()
            raise OSError("it does not answer")
        self.tell(Kind.CLOSE, trial)

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._socket.fileno() >= 0

    def new(self, limit: int) -> int:
        """A screen of its own; ``limit`` is the most bytes of a repaint. Returns its number."""
        self._numbers += 1
        self.tell(Kind.NEW, self._numbers, LENGTH.pack(limit))
        return self._numbers

    @property
    def patience(self) -> float:
        """Seconds that it may be late."""
        return self._patience

    @property
    def waiting(self) -> int:
        """Bytes that it has not taken."""
        if self._waiting and self.alive:
            try:
                self._exchange(0)
            except OSError:
                self._died("it ended")
        return len(self._waiting)

    def tell(self, kind: Kind, number: int, body: bytes = b"") -> None:
        """Say something; what it does not take now follows with the next word."""
        if not self.alive:
            return
        self._waiting += HEADER.pack(kind, number, len(body)) + body
        try:
            self._exchange(0)
        except OSError:
            self._died("it ended")

    def repaint(self, number: int, patience: float | None = None) -> bytes | None:
        """The picture, or none when it does not come in time."""
        self.tell(Kind.REPAINT, number)
        until = time.monotonic() + (self._patience if patience is None else patience)
        try:
            while self.alive:
                if (answer := self._next_answer()) is not None:
                    return answer
                self._exchange(_left(until))
        except TimeoutError:
            self._late += 1
        except OSError:
            self._died("it ended")
        return None

    def stop(self) -> None:
        """End it."""
        atexit.unregister(self.stop)
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._waiting.clear()

    def _exchange(self, seconds: float) -> None:
        """Send and receive what can be, waiting at most so long for the first of it."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._waiting else 0))
        for _, ready in poll.poll(seconds * 1000):
            if ready & select.POLLOUT:
                del self._waiting[: self._socket.send(self._waiting)]
            if ready & ~select.POLLOUT:
                data = self._socket.recv(256 * 1024)
                if not data:
                    raise ConnectionResetError
                self._answers += data

    def _next_answer(self) -> bytes | None:
        """A whole answer, when there is one that is not late."""
        while len(self._answers) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._answers)[0]
            if len(self._answers) < end:
                break
            answer = bytes(self._answers[LENGTH.size : end])
            del self._answers[:end]
            if not self._late:
                return answer
            self._late -= 1
        return None

    def _died(self, reason: str) -> None:
        _log.error("the process of the terminal emulator is gone: %s; sessions go on without it", reason)
        self.stop()


class RemoteScreen:
    """A :class:`~bothy_host.screen.ScreenState`: the process knows the screen, the tail stands by."""

    def __init__(self, process: EmulatorProcess, limit: int) -> None:
        self._process = process
        self._number = process.new(limit)
        self._tail = TailScreen(limit)
        self._printed, self._emulated = False, True
        self._fed = 0  # since the process last kept up with all
        self._behind_since: float | None = None
        self._close = weakref.finalize(self, process.tell, Kind.CLOSE, self._number)

    def feed(self, output: bytes) -> None:
        """The program printed."""
        self._printed = self._printed or bool(output)
        self._tail.feed(output)
        if self._emulated:
            self._process.tell(Kind.FEED, self._number, output)
            self._fed += len(output)
            if self._process.waiting > _FAR_TOO_MANY and self._fed > _LITTLE:
                self._give_up()

    @property
    def behind(self) -> bool:
        """See :class:`~bothy_host.screen.ScreenState`; for so long as a repaint may take."""
        if not self._emulated or self._process.waiting <= _MOST_WAITING:
            self._fed, self._behind_since = 0, None
        elif self._fed <= _LITTLE:
            pass  # others print so much
        elif self._behind_since is None:
            self._behind_since = time.monotonic()
        elif time.monotonic() - self._behind_since > self._process.patience:
            self._give_up()
        return self._emulated and self._behind_since is not None

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now."""
        if self._emulated:
            self._process.tell(Kind.RESIZE, self._number, SIZE.pack(columns, rows))

    def repaint(self) -> bytes:
        """See :class:`~bothy_host.screen.ScreenState`."""
        if not self._printed:
            return b""
        picture = self._process.repaint(self._number) if self._emulated else None
        return self._tail.repaint() if picture is None else picture

    def _give_up(self) -> None:
        _log.warning("a session goes on without the terminal emulator, which does not keep up with it")
        self._emulated = False
        self._close()


def _left(until: float) -> float:
    if (seconds := until - time.monotonic()) <= 0:
        raise TimeoutError
    return seconds


@contextmanager
def screens(patience: float) -> Iterator[MakeScreen]:
    """The emulator's where it is installed (extra ``screen``) and starts, else the tail."""
    if find_spec("pyghostty") is None:
        _log.info("the extra 'screen' is not installed: who attaches later is shown the end of the output")
        yield TailScreen
        return
    try:
        process = EmulatorProcess(patience)
    except OSError as error:
        _log.error("the process of the terminal emulator: %s; who attaches later is shown the end of the output", error)
        yield TailScreen
        return
    try:
        yield lambda limit: RemoteScreen(process, limit)
    finally:
        process.stop()
