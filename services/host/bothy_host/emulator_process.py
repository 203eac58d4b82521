"""The process that runs the terminal emulators of a host; :mod:`bothy_host.emulator_link` starts it and asks.

It has one socket, speaks when it is asked for a repaint, and ends with the socket.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys

from bothy_host.bounded import BoundedScreen
from bothy_host.emulator_protocol import HEADER, LENGTH, SIZE, Kind

_NOBODY = 65534
_LIMITS = {
    resource.RLIMIT_AS: 2 * 1024**3,
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_NOFILE: 32,
    resource.RLIMIT_NPROC: 0,
}


def serve(connection: socket.socket) -> None:
    """Until the other end closes."""
    screens: dict[int, BoundedScreen] = {}
    with connection.makefile("rb") as questions:
        while len(header := questions.read(HEADER.size)) == HEADER.size:
            kind, number, length = HEADER.unpack(header)
            body = questions.read(length)
            match kind:
                case Kind.NEW:
                    screens[number] = BoundedScreen(*LENGTH.unpack(body))
                case Kind.FEED:
                    screens[number].feed(body)
                case Kind.RESIZE:
                    screens[number].resize(*SIZE.unpack(body))
                case Kind.REPAINT:
                    picture = screens[number].repaint()
                    connection.sendall(LENGTH.pack(len(picture)) + picture)
                case Kind.CLOSE:
                    del screens[number]


def lock_up() -> None:
    """Give up every right before the first byte of a program is read: a fault may be more than a crash."""
    for limit, most in _LIMITS.items():
        resource.setrlimit(limit, (most, most))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service ends it
    lock_up()
    serve(socket.socket(fileno=int(sys.argv[1])))
