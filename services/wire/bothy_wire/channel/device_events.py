"""What the device's end tells its shell."""

from __future__ import annotations

from dataclasses import dataclass

from bothy_wire.channel.handshake import RefusalCode, Resume


@dataclass(frozen=True, slots=True)
class Opened:
    """The channel is open. ``dropped_input`` bytes typed were dropped, because another device typed meanwhile."""

    resume: Resume
    output_position: int
    dropped_input: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """The host refused; leave with 1000 and act on the code."""

    code: RefusalCode


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes for the terminal; report them with :meth:`~bothy_wire.channel.device_end.DeviceEnd.processed` when it took them."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Repaint:
    """A piece of a repaint for the terminal; counts in no position, so it is not reported.

    The first piece stands for all output that the terminal has not taken yet. The shell drops that and reports it as if it was
    taken; so what waits for a terminal that takes nothing is never more than one window and one repaint.
    """

    data: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class Exited:
    """The program ended, all its output came before. Report it as one processed byte."""

    status: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for the person."""

    text: str


@dataclass(frozen=True, slots=True)
class InputAcknowledged:
    """The host wrote the input up to this position to the pseudo-terminal."""

    position: int


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer to a ping; ``round_trip`` in seconds."""

    round_trip: float


DeviceEvent = Opened | Refusal | Output | Repaint | Exited | Notice | InputAcknowledged | Pong
