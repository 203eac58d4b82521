"""The process that runs the terminal emulators of a host; :mod:`bothy_host.remote_screen` starts it and asks.

It has one socket, speaks when it is asked for a repaint, and ends with the socket.
"""

from __future__ import annotations

import resource
import signal
import socket
import sys

from bothy_host.bounded import BoundedScreen
from bothy_host.remote_screen import HEADER, LENGTH, SIZE, Kind


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


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service ends it
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    serve(socket.socket(fileno=int(sys.argv[1])))
