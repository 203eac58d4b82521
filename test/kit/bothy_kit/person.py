"""A person at a real pseudo-terminal who types steadily, watches when it is echoed, and keeps everything that is shown."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from bothy_kit import pulse
from bothy_kit.processes import start, stop

COLUMNS, ROWS = 80, 24
_STEP_S = 0.02
_KEY_S = 0.05
_PATIENCE_S = 120.0
_PRINTED = re.compile(rb"\r(\d{10}) (\d{10}) x+\n")
_END = re.compile(rb"\rend (\d+ [0-9a-f]{64}) (\d+ [0-9a-f]{64})\n")
_OWN_WORDS = re.compile(rb"\x1b7(?:\x1b\[\?6l)?\x1b\[1;1H[^\r\n]*?\x1b8|\r\n(?!\d{10} )[^\r\n]*\r\n|\a")
"""What the device writes between the bytes of the program: its status line, words in lines of their own, the bell."""
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[()][0-9A-B]|[ -~])")
_NUMBERED = re.compile(rb"(\d{10}) \d{10} x")
RESET = b"\x1bc"
"""A repaint begins with it."""


class PersonError(Exception):
    """The terminal does not show what it must. The message holds the end of what it shows."""


@dataclass(frozen=True, slots=True)
class Account:
    """What came through, as both ends count it."""

    output_lost: int
    """Bytes that the program printed and the terminal did not show, or that came doubled or changed."""
    input_lost: int
    """Bytes that were typed and did not reach the program, or that came doubled or changed."""
    repaints: int
    """How often the screen was drawn anew; then output is judged by what is on it."""
    screen_whole: bool
    """All lines follow one another, but for one break at each repaint."""


class Person:
    """Made by :func:`person`. A thread types and reads; the verbs are for others."""

    def __init__(self, master: int, process: subprocess.Popen[bytes], typed: pulse.Tally) -> None:
        self.typed = typed
        """What counts as typed, on whatever device."""
        self._master = master
        self._process = process
        self._shown = bytearray()
        self._echoes: list[float] = []
        self._echoed = 0
        self._to_type = bytearray()
        self._typing = threading.Lock()
        self._steady = threading.Event()
        self._over = threading.Event()

    # ---- what a person does -----------------------------------------------------------------------------------------

    def run(self, words: Sequence[str]) -> None:
        """Replace the shell by the program, and wait until that has begun. Raises :class:`PersonError`."""
        self.type(b"exec " + " ".join(words).encode() + b"\n", counts=False)
        self.wait(lambda: pulse.BEGIN in self._shown, "the program has not begun")

    def type(self, keys: bytes, *, counts: bool = True) -> None:
        """Type ``keys``; those that count are input of the program."""
        with self._typing:
            self._to_type += keys
            if counts:
                self.typed.add(keys)

    def keep_typing(self, *, on: bool = True) -> None:
        """A key every twentieth of a second, or none."""
        if on:
            self._steady.set()
        else:
            self._steady.clear()

    def sleep(self) -> None:
        """Close the lid: the device does nothing any more."""
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Open the lid."""
        self._process.send_signal(signal.SIGCONT)

    # ---- what a person sees -----------------------------------------------------------------------------------------

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Until ``done``. Raises :class:`PersonError`, also when the device ends."""
        deadline = time.monotonic() + _PATIENCE_S
        while not done():
            if self._over.is_set() or time.monotonic() > deadline:
                raise PersonError(f"{what}; bothy shows {bytes(self._shown[-600:])!r}")
            time.sleep(_STEP_S)

    def sees(self, words: bytes) -> bool:
        """Whether ``words`` were shown since the program began."""
        return words in self._shown.partition(pulse.BEGIN)[2]

    def wait_for_echo(self) -> None:
        """Until a key typed now is echoed. Raises :class:`PersonError`."""
        self.type(b"k")
        typed = self.typed.count
        self.wait(lambda: self._echoed >= typed, f"key {typed} was not echoed")

    def longest_silence(self, since: float) -> float:
        """Seconds, from ``since`` on, in which no new key was echoed."""
        times = [since, *(at for at in list(self._echoes) if at > since)]
        return max((after - before for before, after in pairwise(times)), default=0.0)

    def finish(self) -> Account:
        """End the program and with it the session; what came through. Raises :class:`PersonError`."""
        self.keep_typing(on=False)
        self.wait_for_echo()
        self.type(pulse.END, counts=False)
        if not self._over.wait(_PATIENCE_S):
            raise PersonError("the device does not end with its program")
        status = self._process.wait()
        shown = bytes(self._shown).partition(pulse.BEGIN)[2]
        return account(shown, self.typed, status)

    # ---- the thread -------------------------------------------------------------------------------------------------

    def live(self) -> None:
        """Type and read until the device has closed its terminal."""
        next_key = time.monotonic()
        while True:
            if self._steady.is_set() and time.monotonic() >= next_key:
                next_key = time.monotonic() + _KEY_S
                self.type(b"k")
            writers = [self._master] if self._to_type else []
            readable, writable, _ = select.select([self._master], writers, [], _STEP_S)
            if writable:
                with self._typing:
                    del self._to_type[: os.write(self._master, self._to_type[:1024])]
            if readable and not self._read():
                self._over.set()
                return

    def _read(self) -> bool:
        try:
            data = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # a pseudo-terminal says so when its other end is closed
                raise
            return False
        start = max(0, len(self._shown) - pulse.LINE_BYTES)
        self._shown += data
        for line in _PRINTED.finditer(self._shown, start):
            if int(line[2]) > self._echoed:
                self._echoed = int(line[2])
                self._echoes.append(time.monotonic())
        return bool(data)


@contextmanager
def person(
    words: Sequence[str], environment: Mapping[str, str], *, typed: pulse.Tally | None = None
) -> Iterator[Person]:
    """A person whose device runs ``words`` on a terminal of its own, for the block.

    ``typed`` goes on from another device, on which nobody types meanwhile.
    """
    master, slave = os.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    try:
        process = start(words, env={**environment, "TERM": "xterm-256color"}, stdin=slave, output=slave)
        os.close(slave)
        made = Person(master, process, pulse.Tally() if typed is None else typed)
        thread = threading.Thread(target=made.live, name="person")
        thread.start()
        try:
            yield made
        finally:
            made.wake()
            stop(process, signal.SIGHUP)
            thread.join()
    finally:
        os.close(master)


def account(shown: bytes, typed: pulse.Tally, status: int) -> Account:
    """What came through, from what a device showed and what was typed. Raises :class:`PersonError`."""
    text = _OWN_WORDS.sub(b"", shown)
    end = _END.search(text)
    if end is None or status != 0:
        raise PersonError(f"the device ended with {status} and shows {shown[-600:]!r}")
    printed = text[: end.start()]
    repaints = printed.count(RESET)
    numbers = [int(each) for each in _NUMBERED.findall(_SEQUENCE.sub(b"", printed))]
    breaks = sum(after != before + 1 for before, after in pairwise(numbers))
    return Account(
        output_lost=0 if repaints else _lost(end[1].decode(), str(pulse.Tally(printed))),
        input_lost=_lost(str(typed), end[2].decode()),
        repaints=repaints,
        screen_whole=breaks <= repaints,
    )


def _lost(sent: str, arrived: str) -> int:
    """0 only when count and hash are the same."""
    if sent == arrived:
        return 0
    before, after = (int(each.partition(" ")[0]) for each in (sent, arrived))
    return abs(before - after) or 1
