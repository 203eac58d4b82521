"""Screens whose emulator runs in another process; when that is late, dead or not installed, the end of the output.

The emulator is native code that reads what programs print. A fault in it must end no session, so it has a process of its own,
one for all sessions of a host. A repaint waits for it, and who prints faster than it reads, both not long.
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

    def tell(self, kind: Kind, number: int, body: bytes = b"") -> bool:
        """Say something; what it does not take now follows with the next word. False when it did not keep up."""
        if not self.alive:
            return True
        self._waiting += HEADER.pack(kind, number, len(body)) + body
        try:
            self._exchange(0)
            if len(self._waiting) > _MOST_WAITING:
                self._catch_up()
        except TimeoutError:
            return False
        except OSError:
            self._died("it ended")
        return True

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

    def _catch_up(self) -> None:
        """Wait as long as a repaint may: who prints faster than the emulator reads goes at its pace."""
        until = time.monotonic() + self._patience
        while len(self._waiting) > _MOST_WAITING // 2:
            self._exchange(_left(until))

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
        self._emulated = True
        self._close = weakref.finalize(self, process.tell, Kind.CLOSE, self._number)

    def feed(self, output: bytes) -> None:
        """The program printed."""
        self._tail.feed(output)
        if self._emulated and not self._process.tell(Kind.FEED, self._number, output):
            _log.warning("a session goes on without the terminal emulator, which does not keep up with it")
            self._emulated = False
            self._close()

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now."""
        if self._emulated:
            self._process.tell(Kind.RESIZE, self._number, SIZE.pack(columns, rows))

    def repaint(self) -> bytes:
        """See :class:`~bothy_host.screen.ScreenState`."""
        picture = self._process.repaint(self._number) if self._emulated else None
        return self._tail.repaint() if picture is None else picture


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
