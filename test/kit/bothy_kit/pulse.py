"""The program of a session under test: lines without end, and at the end what was printed and typed, by hash.

``python pulse.py RATE`` prints so many bytes per second, and three lines more for whatever is typed. Each line has a number
and the count of bytes typed so far. A ``.`` ends it. It runs on the host with nothing but Python.
"""

from __future__ import annotations

import hashlib
import os
import select
import sys
import time
import tty

BEGIN = b"begin\n"
END = b"."
LINE_BYTES = 64
_STEP_S = 0.02
_ECHO_LINES = 3
"""Together longer than what a frame with a short header takes."""


class Tally:
    """How many bytes passed, and which."""

    def __init__(self, data: bytes = b"") -> None:
        self.count = 0
        self._hash = hashlib.sha256()
        self.add(data)

    def add(self, data: bytes) -> None:
        """More bytes."""
        self.count += len(data)
        self._hash.update(data)

    def __str__(self) -> str:
        return f"{self.count} {self._hash.hexdigest()}"


def line(number: int, typed: int) -> bytes:
    """Begins where the last one ended and never holds CR LF, which is how words of the device's own begin and end."""
    return b"\r%010d %010d " % (number, typed) + b"x" * (LINE_BYTES - 25) + b"\n"


def main(rate: float) -> None:
    """Until ``.`` is typed."""
    tty.setraw(0)
    printed, typed = Tally(), Tally()
    number, due, owed = 0, time.monotonic(), 0.0
    _write(BEGIN)
    while True:
        lines = 0
        if select.select([0], [], [], _STEP_S)[0]:
            data = os.read(0, 65536)
            typed.add(data.removesuffix(END))
            lines += _ECHO_LINES
            if data.endswith(END):
                break
        now = time.monotonic()
        owed = min(owed + rate * (now - due), rate)  # what was held back is not made up for
        due = now
        lines += int(owed // LINE_BYTES)
        owed %= LINE_BYTES
        text = b"".join(line(number + each, typed.count) for each in range(lines))
        number += lines
        printed.add(text)
        _write(text)
    _write(f"\rend {printed} {typed}\n".encode())


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(float(sys.argv[1]))
