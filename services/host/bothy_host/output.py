"""What a program printed, what was sent of it, and how much may be read on.

With a device watching, the program runs at the pace of that device's terminal. Without one it runs on until
``replay_bytes`` are unacknowledged, waits until ``hold`` seconds after the device left, then runs on and the oldest goes: a
program never waits longer than that for an absent person.
"""

from __future__ import annotations

from dataclasses import dataclass

from bothy_host.ring import Ring
from bothy_host.screen import ScreenState


@dataclass(frozen=True, slots=True)
class Absent:
    """Nobody watches since then."""

    since: float


@dataclass(frozen=True, slots=True)
class Joining:
    """A device was accepted to go on at ``position``; until it is shown the screen as it is there nothing is read, so that
    nothing can be lost.
    """

    before: Absent
    position: int


@dataclass(frozen=True, slots=True)
class Watched:
    """A device is there and got everything up to ``sent``."""

    sent: int


class Output:
    """The output of one session. Positions count bytes from its start."""

    def __init__(self, screen: ScreenState, *, replay_bytes: int, window: int, hold: float, now: float) -> None:
        self._screen = screen
        self._shown = 0  # position up to which the screen was fed
        self._replay_bytes = replay_bytes
        self._hold = hold
        self._ring = Ring(replay_bytes + window)
        self._acknowledged = 0
        self._audience: Absent | Joining | Watched = Absent(now)

    @property
    def end(self) -> int:
        """Position behind the last byte printed."""
        return self._ring.end

    @property
    def start(self) -> int:
        """Position of the oldest byte still held."""
        return self._ring.start

    @property
    def unacknowledged(self) -> int:
        """Bytes that no device's terminal is known to have taken."""
        return self._ring.end - self._acknowledged

    @property
    def complete(self) -> bool:
        """Whether a watching device got everything."""
        return isinstance(self._audience, Watched) and self._audience.sent >= self._ring.end

    def printed(self, data: bytes) -> None:
        """The program printed; at its exit more than :meth:`wants` said, because nobody can read it later."""
        match self._audience:
            case Watched(position) | Joining(_, position):
                self._ring.append(data, keep=position)
            case Absent():
                self._ring.append(data)
        self._show()

    def acknowledged(self, position: int) -> None:
        """The device's terminal took everything up to here."""
        self._acknowledged = max(self._acknowledged, min(position, self._ring.end))

    def joining(self, position: int) -> None:
        """A device was told that its output goes on at ``position``."""
        match self._audience:
            case Absent() as absent:
                self._audience = Joining(absent, position)
            case Joining(before, _):
                self._audience = Joining(before, position)
            case Watched():
                raise AssertionError("the device before must have left")

    def joined(self) -> None:
        """That device is there, and has what comes before."""
        assert isinstance(self._audience, Joining)
        self.acknowledged(self._audience.position)
        self._audience = Watched(self._audience.position)
        self._show()

    def left(self, now: float) -> None:
        """The device went; a second time changes nothing."""
        match self._audience:
            case Watched():
                self._audience = Absent(now)
            case Joining(before, _):
                self._audience = before
                self._show()
            case Absent():
                pass

    def take(self, credit: int) -> bytes:
        """What to send now, at most ``credit`` bytes; it counts as sent."""
        if not isinstance(self._audience, Watched):
            return b""
        data = self._ring.slice(self._audience.sent, self._audience.sent + credit)
        self._audience = Watched(self._audience.sent + len(data))
        return data

    def wants(self, now: float, credit: int) -> int:
        """Bytes that may be read from the program now; ``credit`` is what the device has room for."""
        if self._screen.behind:
            return 0
        match self._audience:
            case Watched(sent):
                return max(credit - (self._ring.end - sent), 0)
            case Joining():
                return 0
            case Absent(since):
                room = self._replay_bytes - (self._ring.end - self._acknowledged)
                return self._replay_bytes if now >= since + self._hold else max(room, 0)

    def deadline(self) -> float | None:
        """When :meth:`wants` changes by time alone."""
        match self._audience:
            case Absent(since) if self._ring.end - self._acknowledged >= self._replay_bytes:
                return since + self._hold
            case _:
                return None

    def _show(self) -> None:
        """Keep the screen up to date; while a device joins it stays where that device was told to go on."""
        if not isinstance(self._audience, Joining):
            self._screen.feed(self._ring.slice(self._shown, self._ring.end))
            self._shown = self._ring.end
