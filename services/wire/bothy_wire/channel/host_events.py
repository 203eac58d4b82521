"""What the host's end tells its shell."""

from __future__ import annotations

from dataclasses import dataclass

from bothy_wire.channel.handshake import Message1


@dataclass(frozen=True, slots=True)
class Offered:
    """Message 1 opened. Answer with ``accept`` or ``refuse`` of :class:`~bothy_wire.channel.host_end.HostEnd`."""

    message1: Message1
    device_key: bytes


@dataclass(frozen=True, slots=True)
class Opened:
    """The device's first record came: only now anything may change."""

    columns: int
    rows: int
    term: str


@dataclass(frozen=True, slots=True)
class Input:
    """Bytes for the pseudo-terminal; report them with :meth:`~bothy_wire.channel.host_end.HostEnd.written`."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    """The terminal has a new size."""

    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The device's terminal took the output up to this position."""

    position: int


@dataclass(frozen=True, slots=True)
class Pinged:
    """The device measures the round trip; the answer is on its way."""


HostEvent = Offered | Opened | Input | Resized | Acknowledged | Pinged
