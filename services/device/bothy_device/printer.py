"""Writes to the person's terminal without blocking: remote output in order, words of our own where they do no harm."""

from __future__ import annotations

import asyncio
import os
import select
import time
from collections import deque
from collections.abc import Callable

from bothy_device.modes import Modes

FAREWELL = 1.0
"""Seconds that the terminal has to take the sequences that bring it back, and the last words."""
_WORDS = 16
"""Words of our own that may wait; of more, the oldest go."""


class Printer:
    """A queue in front of one descriptor. A channel bounds it: what a host may send unacknowledged, and one repaint."""

    def __init__(
        self, descriptor: int, *, blocking: bool, on_written: Callable[[int], None], on_lost: Callable[[str], None]
    ) -> None:
        """``blocking``: the descriptor is somebody else's and waits when it is full, so it gets ``PIPE_BUF`` at a time.

        ``on_written`` gets the number of remote bytes taken, ``on_lost`` why nothing more can be written.
        """
        self._descriptor = descriptor
        self._at_once = select.PIPE_BUF if blocking else None
        self._on_written = on_written
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._queue: deque[tuple[bytes, bool]] = deque()
        """What is to be written, and whether it is the remote side's."""
        self._waiting = False
        self._modes = Modes()
        self._words: deque[bytes] = deque(maxlen=_WORDS)
        self._status: bytes | None = None
        """What changes the status line, until it is in the queue; ``_line`` says that it draws one."""
        self._line = self._shown = False
        self._owed = b""
        """What was cancelled of the remote output."""

    def write(self, data: bytes) -> None:
        """Remote output."""
        self._queue.append((data, True))
        self._pump()

    def discard(self) -> None:
        """Forget remote output that waits, because a repaint follows. It counts as taken."""
        waiting = sum(len(data) for data, remote in self._queue if remote)
        self._queue = deque(each for each in self._queue if not each[1])
        self._on_written(waiting)

    def say(self, words: bytes) -> None:
        """Words of our own, as soon as the output is between two sequences and two characters; the same twice is once."""
        if words not in self._words:
            self._words.append(words)
        self._pump()

    def status(self, text: str | None, columns: int) -> bool:
        """One line in reverse video at the top, where a shell's prompt seldom is; ``None`` takes it away.

        Whether what the program had there is lost now: not when it cleared the screen, and the line with it.
        """
        self._line = text is not None
        if text is None and not self._shown:
            self._status = None
            return False
        line = b"\x1b[2K" if text is None else b"\x1b[7m %s \x1b[0m\x1b[K" % text[: max(0, columns - 2)].encode()
        # The cursor, its colours and origin mode are saved and brought back.
        self._status = b"\x1b7\x1b[?6l\x1b[1;1H\x1b[0m" + line + b"\x1b8"
        self._pump()
        return text is None

    @property
    def full_screen(self) -> bool:
        """See :attr:`Modes.full_screen`."""
        return self._modes.full_screen

    def close(self, *, fresh_line: bool) -> None:
        """Drop what waits and switch off what the remote program left on. The terminal may be gone by now."""
        self._await(wanted=False)
        self._queue.clear()
        farewell = self._modes.restore()
        if self._shown:
            farewell = b"\x1b7\x1b[1;1H\x1b[2K\x1b8" + farewell
        if fresh_line:
            farewell += b"\r\n"
        write_out(self._descriptor, farewell, FAREWELL)

    def _pump(self) -> None:
        try:
            while self._next() and (self._at_once is None or _ready(self._descriptor)):
                data, remote = self._queue.popleft()
                count = 0
                try:
                    count = os.write(self._descriptor, data[: self._at_once])
                finally:
                    if count < len(data):
                        self._queue.appendleft((data[count:], remote))
                if remote:
                    if self._modes.feed(data[:count]):
                        self._shown = False
                    self._on_written(count)
        except BlockingIOError:
            pass
        except OSError as error:
            self._queue.clear()
            self._on_lost(error.strerror or str(error))
        self._await(wanted=bool(self._queue))

    def _next(self) -> bool:
        """Put our words in front where they may stand; whether there is anything to write.

        A status line does not wait for output that broke off inside a sequence, because in an outage nothing follows: the
        sequence is cancelled, and begun again in front of the output that ends it.
        """
        between = self._modes.between_sequences or bool(self._owed)
        cancels = self._status is not None and not self._queue and not between
        if (between or cancels) and (not self._queue or self._queue[0][1]):
            words = b"".join(self._words) + (self._status or b"")
            if self._status is not None:
                self._shown = self._line
            self._words.clear()
            self._status = None
            if cancels:
                self._owed = self._modes.tail
                words = b"\x18" + words
            if words:
                self._queue.appendleft((words, False))
        if self._owed and self._queue and self._queue[0][1]:
            self._queue.appendleft((self._owed, False))
            self._owed = b""
        return bool(self._queue)

    def _await(self, *, wanted: bool) -> None:
        if wanted and not self._waiting:
            self._loop.add_writer(self._descriptor, self._pump)
        elif self._waiting and not wanted:
            self._loop.remove_writer(self._descriptor)
        self._waiting = wanted


def write_out(descriptor: int, data: bytes, patience: float) -> None:
    """Write what the descriptor takes within ``patience`` seconds, and forget the rest: perhaps nobody reads it."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    until = time.monotonic() + patience
    try:
        while data and poll.poll(max(until - time.monotonic(), 0) * 1000):
            data = data[os.write(descriptor, data[: select.PIPE_BUF]) :]
    except OSError:
        return


def _ready(descriptor: int) -> bool:
    """Whether a write of ``PIPE_BUF`` bytes does not block; a plain file is always ready."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))
