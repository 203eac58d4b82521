"""The person's terminal: raw while a session runs, as it was before on every way out.

Nothing here blocks the event loop. A terminal is opened once more, so that non-blocking access is a matter of ours alone:
the flag on the descriptor that we were given would be shared with the shell and everything else that holds it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import tty
from collections.abc import Callable
from types import TracebackType
from typing import Self

from bothy_device.events import Event, Quit, Resized, Typed, Written
from bothy_device.printer import FAREWELL, Printer, write_out

STDIN, STDOUT, STDERR = 0, 1, 2
READ_BYTES = 64 * 1024
RESIZE_DELAY = 0.05
"""Seconds in which changes of the size count as one."""

_ENDING = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "the terminal is gone",
    signal.SIGQUIT: "quit",
}


class Screen:
    """Standard input and output of a session, a context manager. ``feed`` gets what happens there."""

    def __init__(self, feed: Callable[[Event], None]) -> None:
        self._feed = feed
        self._loop = asyncio.get_running_loop()
        self.has_keyboard = os.isatty(STDIN)
        """Whether a person types; a pipe or a file otherwise."""
        self._has_display = os.isatty(STDOUT)
        self._before = termios.tcgetattr(STDIN) if self.has_keyboard else None
        self.message_follows = False
        """Whether the caller has something to say afterwards, which must not stand behind a prompt."""
        self._begun = False
        self._raw = False
        self._reading = False
        self._next_read: asyncio.Handle | None = None
        self._status: str | None = None
        self._resize: asyncio.TimerHandle | None = None
        self._size = self.size()

    def __enter__(self) -> Self:
        self._input = _reopened(STDIN, os.O_RDONLY) if self.has_keyboard else STDIN
        self._output = _reopened(STDOUT, os.O_WRONLY) if self._has_display else STDOUT
        self._input_waits = self._can_wait_for_input()
        self._printer = Printer(
            self._output,
            blocking=self._output == STDOUT,
            on_written=lambda count: self._feed(Written(count)),
            on_lost=lambda why: self._feed(Quit(255, f"cannot write the output: {why}")),
        )
        for number, text in _ENDING.items():
            self._loop.add_signal_handler(number, self._feed, Quit(128 + number, text))
        self._loop.add_signal_handler(signal.SIGWINCH, self._size_changed)
        self._loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        self._loop.add_signal_handler(signal.SIGCONT, self._continued)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.read(on=False)
        if self._resize:
            self._resize.cancel()
        self._printer.close(fresh_line=self.message_follows and self._raw and self._has_display)
        self._restore()
        for number in (*_ENDING, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT):
            self._loop.remove_signal_handler(number)
        for own, given in ((self._input, STDIN), (self._output, STDOUT)):
            if own != given:
                os.close(own)

    # ---- what the session asks for ----------------------------------------------------------------------------------

    def size(self) -> Resized:
        """Columns and rows; without a terminal ``COLUMNS`` and ``LINES``, else 80 by 24."""
        for descriptor in (STDOUT, STDIN):
            try:
                return Resized(*os.get_terminal_size(descriptor))
            except OSError:
                continue
        return Resized(_number("COLUMNS", 80), _number("LINES", 24))

    def begin(self) -> None:
        """Keys go to the remote side from now on."""
        self._begun = True
        self._make_raw()
        self.read(on=True)

    def read(self, *, on: bool) -> None:
        """Read the keyboard, or leave there what is typed."""
        if on is self._reading:
            return
        self._reading = on
        match on, self._input_waits:
            case True, True:
                self._loop.add_reader(self._input, self._readable)
            case True, False:
                self._read_soon()
            case False, True:
                self._loop.remove_reader(self._input)

    def write(self, data: bytes) -> None:
        """Remote output; reported as :class:`Written` when the terminal took it."""
        self._printer.write(data)

    def discard(self) -> None:
        """Forget remote output that the terminal has not taken; reported as if it had."""
        self._printer.discard()

    def say(self, text: str) -> None:
        """Lines of our own."""
        if self._raw and self._has_display:
            self._printer.say(b"\r\n" + text.replace("\n", "\r\n").encode() + b"\r\n")
        else:
            complain(text, newline="\r\n" if self._raw else "\n", patience=0)

    def status(self, text: str | None) -> None:
        """The status line; without a terminal to show it, its first words are said."""
        if self._has_display:
            if self._printer.status(text, self._size.columns) and self._printer.full_screen:
                self._have_drawn_anew()
        elif text and self._status is None:
            self.say(text)
        self._status = text

    def bell(self) -> None:
        """Keys were dropped."""
        if self._has_display:
            self._printer.say(b"\a")

    def suspend(self) -> None:
        """Give the terminal back and stop, as a program does that gets ^Z. Returns when it is continued."""
        self._restore()
        self._loop.remove_signal_handler(signal.SIGTSTP)
        os.kill(os.getpid(), signal.SIGTSTP)
        self._loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        self._continued()  # without job control nothing stopped us and no SIGCONT comes

    # ---- the terminal's settings ------------------------------------------------------------------------------------

    def _make_raw(self) -> None:
        if self._before and not self._raw:
            tty.setraw(STDIN, termios.TCSANOW)
            self._raw = True

    def _restore(self) -> None:
        if self._before and self._raw:
            self._raw = False
            try:
                termios.tcsetattr(STDIN, termios.TCSANOW, self._before)
            except termios.error:
                return  # the terminal is gone, and its settings with it

    def _continued(self) -> None:
        """After SIGCONT somebody else may have set the terminal, even where SIGSTOP gave us no time to restore it."""
        if self._begun:
            self._raw = False
            self._make_raw()
        self._size_changed()

    def _have_drawn_anew(self) -> None:
        """What stood where the status line was is known to the program only: it draws everything for another size."""
        columns, rows = self._size.columns, self._size.rows
        if rows > 1:
            self._size = Resized(columns, rows - 1)
            self._feed(self._size)
            self._size_changed()

    def _size_changed(self) -> None:
        if self._resize is None:
            self._resize = self._loop.call_later(RESIZE_DELAY, self._tell_size)

    def _tell_size(self) -> None:
        self._resize = None
        size = self.size()
        if size != self._size:
            self._size = size
            self._feed(size)

    # ---- input ------------------------------------------------------------------------------------------------------

    def _can_wait_for_input(self) -> bool:
        """A plain file and ``/dev/null`` are always ready and cannot be waited for."""
        try:
            self._loop.add_reader(self._input, self._readable)
        except PermissionError:
            return False
        self._loop.remove_reader(self._input)
        return True

    def _read_soon(self) -> None:
        if self._next_read:
            self._next_read.cancel()
        self._next_read = self._loop.call_soon(self._readable)

    def _readable(self) -> None:
        if not self._reading:
            return
        try:
            data = os.read(self._input, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # a terminal that hung up
        if not data:
            self.read(on=False)
            if self.has_keyboard:
                self._feed(Quit(128 + signal.SIGHUP, _ENDING[signal.SIGHUP]))
            return
        self._feed(Typed(data))
        if not self._input_waits:
            self._read_soon()


def complain(text: str, *, newline: str = "\n", patience: float = FAREWELL) -> None:
    """One line on standard error, as far as it takes it within ``patience`` seconds.

    A terminal that nobody reads may be full of remote output; an ordinary write would wait for its reader for ever.
    """
    own = _reopened(STDERR, os.O_WRONLY) if os.isatty(STDERR) else STDERR
    write_out(own, f"bothy: {text}{newline}".encode(errors="replace"), patience)
    if own != STDERR:
        os.close(own)


def _reopened(descriptor: int, flags: int) -> int:
    """The same terminal, opened by ourselves and non-blocking; the given descriptor where that is not allowed."""
    try:
        names = [os.ttyname(descriptor), "/dev/tty"]
    except OSError:
        names = ["/dev/tty"]
    for name in names:
        try:
            return os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            continue
    return descriptor


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else default
