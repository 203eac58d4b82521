"""Try the demo from outside, as a person would: the real ``bothy`` on a real pseudo-terminal.

Each step is told and timed; the first thing that is wrong raises :class:`CheckError`.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import select
import signal
import statistics
import struct
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from bothy_kit.demo_world import World
from bothy_kit.processes import start, stop
from bothy_kit.programs import command
from bothy_kit.world_parts import HOST, Node, Say

PAYLOAD_BYTES = 200_000
EXIT_STATUS = 7
_STEP_S = 30.0
_OPENINGS = 40
"""The edge draws the node of the REST call and the node of the relay: one opening in four crosses nodes in both."""
_ECHOES = 50


class CheckError(Exception):
    """The demo does not do what it should."""


class Screen:
    """The person's end of one running ``bothy``: keys go in, what it prints comes out."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._shown = b""

    def type(self, keys: bytes) -> None:
        """Type ``keys``, reading meanwhile what is printed, so that neither end waits for the other."""
        while keys:
            readable, writable, _ = select.select([self._master], [self._master], [], _STEP_S)
            if not readable and not writable:
                raise CheckError(f"bothy takes no keys; it shows {self._shown[-200:]!r}")
            if readable:
                self._read()
            if writable:
                keys = keys[os.write(self._master, keys[:4096]) :]

    def expect(self, pattern: bytes) -> re.Match[bytes]:
        """Wait until ``pattern`` is shown; everything up to it counts as seen."""
        deadline = time.monotonic() + _STEP_S
        while (found := re.search(pattern, self._shown, re.DOTALL)) is None:
            if not select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise CheckError(f"{pattern!r} did not come; bothy shows {self._shown[-400:]!r}")
            if not self._read():
                raise CheckError(f"{pattern!r} did not come, and bothy has ended; it shows {self._shown[-400:]!r}")
        self._shown = self._shown[found.end() :]
        return found

    def quiet(self, seconds: float) -> None:
        """Read until nothing was shown for so long. Raises :class:`CheckError`."""
        deadline = time.monotonic() + _STEP_S
        while select.select([self._master], [], [], seconds)[0] and self._read():
            if time.monotonic() > deadline:
                raise CheckError(f"bothy goes on printing; it shows {self._shown[-200:]!r}")

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def finish(self) -> None:
        """Read until bothy has closed its terminal."""
        while self._read():
            pass

    def _read(self) -> bool:
        try:
            data = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # a pseudo-terminal says so when its other end is closed
                raise
            return False
        self._shown += data
        return bool(data)


def check(world: World, say: Say) -> None:
    """All of it. Raises :class:`CheckError`."""
    for _ in range(_OPENINGS):
        begun, before = time.monotonic(), _opened_by(world)
        with opened(world) as (screen, ended):
            screen.type(b"exec sh\n")
            _plain_shell(screen)
            opened_s = time.monotonic() - begun
            rest = next(node for node, count in _opened_by(world).items() if count > before[node])
            control = _holder(world, "bothy_hosts_control_connections")
            relay = _holder(world, "bothy_terminal_relay_pairs")
            if control in (rest, relay):
                screen.type(b"exit 0\n")
                screen.finish()
                world.bothy("hosts")  # an odd number of calls: the edge takes turns, and an opening is an even number
                continue
            say(
                f"open: {opened_s * 1000:.0f} ms from the command to the shell;"
                f" {rest.name} took the call, {control.name} told the host, {relay.name} relays"
            )
            _exercise(screen, ended, say)
            return
    raise CheckError(f"none of {_OPENINGS} sessions was opened and relayed by another node than the host's")


def exercise(screen: Screen, ended: Callable[[], int], say: Say) -> None:
    """Try everything in a session that was just opened, and end it. Raises :class:`CheckError`."""
    screen.type(b"exec sh\n")
    _plain_shell(screen)
    _exercise(screen, ended, say)


def opened(world: World) -> AbstractContextManager[tuple[Screen, Callable[[], int]]]:
    """``bothy open`` on a pseudo-terminal."""
    return on_terminal([command("bothy"), "open", HOST], world.device)


@contextmanager
def on_terminal(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[tuple[Screen, Callable[[], int]]]:
    """A program on a pseudo-terminal: the screen, and what waits for its exit status."""
    master, slave = os.openpty()
    process = None
    try:
        screen = Screen(master)
        screen.resize(80, 24)
        process = start(words, env={**environment, "TERM": "xterm-256color"}, stdin=slave, output=slave)
        os.close(slave)
        yield screen, lambda: process.wait(_STEP_S)
    finally:
        if process is not None:
            stop(process, signal.SIGHUP)
        os.close(master)


def _exercise(screen: Screen, ended: Callable[[], int], say: Say) -> None:
    _run_a_command(screen, say)
    _resize(screen, say)
    _receive(screen, say)
    _send(screen, say)
    _echo(screen, say)
    screen.type(b"exit %d\n" % EXIT_STATUS)
    screen.finish()
    status = ended()
    if status != EXIT_STATUS:
        raise CheckError(f"the remote shell ended with {EXIT_STATUS}, bothy with {status}")
    say(f"exit: the device saw status {status}")


def _plain_shell(screen: Screen) -> None:
    """A shell without a prompt and an own line editor, whatever the account's login shell is."""
    screen.type(b"PS1= PS2=; echo he''re\n")
    screen.expect(rb"here\r\n")


def _opened_by(world: World) -> dict[Node, float]:
    return {node: node.gauge("bothy_terminal_sessions_opened") for node in world.nodes}


def _holder(world: World, gauge: str) -> Node:
    holders = [node for node in world.nodes if node.gauge(gauge) == 1]
    if len(holders) != 1:
        raise CheckError(f"{gauge} is 1 on {len(holders)} nodes, not on one")
    return holders[0]


def _run_a_command(screen: Screen, say: Say) -> None:
    screen.type(b"echo $((6 * 7)) answers; uname -s\n")
    screen.expect(rb"42 answers\r\nLinux\r\n")
    say("commands: run in the remote shell")


def _resize(screen: Screen, say: Say) -> None:
    screen.resize(123, 45)
    screen.type(b"until [ \"$(stty size)\" = '45 123' ]; do sleep 0.05; done; echo resi''zed\n")
    screen.expect(rb"resized\r\n")
    say("resize: the remote terminal has 123 columns and 45 rows")


def _payload() -> bytes:
    """Numbers, one a line, so that a lost, doubled or moved piece changes the hash."""
    return b"".join(b"%d\n" % number for number in range(100_000, 100_000 + PAYLOAD_BYTES // 7 + 1))[:PAYLOAD_BYTES]


def _receive(screen: Screen, say: Say) -> None:
    begun = time.monotonic()
    screen.type(b"stty -opost; echo beg''in; seq 100000 200000 | head -c %d; echo en''d; stty opost\n" % PAYLOAD_BYTES)
    screen.expect(rb"begin\n")
    received = screen.expect(rb"end\n")
    data = received.string[: received.start()]
    _compare("from the host", data, hashlib.sha256(data).hexdigest())
    say(f"receive: {PAYLOAD_BYTES:,} bytes in {time.monotonic() - begun:.2f} s, hash equal")


def _send(screen: Screen, say: Say) -> None:
    begun = time.monotonic()
    screen.type(b"stty raw -echo; echo rea''dy; head -c %d | sha256sum; stty sane\n" % PAYLOAD_BYTES)
    screen.expect(rb"ready\r?\n")
    data = _payload()
    screen.type(data)
    _compare("to the host", data, screen.expect(rb"([0-9a-f]{64})  -")[1].decode())
    say(f"send: {PAYLOAD_BYTES:,} bytes in {time.monotonic() - begun:.2f} s, hash equal")


def _compare(way: str, data: bytes, seen: str) -> None:
    if hashlib.sha256(_payload()).hexdigest() != seen:
        raise CheckError(f"{len(data)} bytes {way} arrived changed")


def _echo(screen: Screen, say: Say) -> None:
    """One key at a time, as the kernel of the host echoes it."""
    screen.type(b"stty sane; echo rea''dy\n")
    screen.expect(rb"ready\r\n")
    times = []
    for _ in range(_ECHOES):
        begun = time.monotonic()
        screen.type(b"x")
        screen.expect(rb"x")
        times.append(time.monotonic() - begun)
    screen.type(b"\x15")  # erases the line
    worst = sorted(times)[int(_ECHOES * 0.95)]
    say(f"echo: {statistics.median(times) * 1000:.1f} ms median, {worst * 1000:.1f} ms at 95 %")
