"""The host's end of the end-to-end channel, without I/O and without a clock."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_wire.channel.flow import Limits
from bothy_wire.channel.handshake import Message1, RefusalCode, Resume


@dataclass(frozen=True, slots=True)
class Offered:
    """Message 1 opened. Answer with :meth:`HostEnd.accept` or :meth:`HostEnd.refuse`."""

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
    """Bytes for the pseudo-terminal; report them with :meth:`HostEnd.written`."""

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


class HostEnd:
    """One session as the host sees it; lives over many pairings."""

    def __init__(self, *, channel_key: X25519PrivateKey, session_id: UUID, host_id: UUID, limits: Limits) -> None:
        raise NotImplementedError

    def paired(self, now: float) -> None:
        """``side.paired`` came: wait for message 1."""
        raise NotImplementedError

    def unpaired(self) -> None:
        """``side.unpaired`` came or the connection is lost: the channel is gone, the counts are kept."""
        raise NotImplementedError

    def receive(self, message: bytes, now: float) -> list[HostEvent]:
        """One binary frame."""
        raise NotImplementedError

    def take_outgoing(self) -> list[bytes]:
        """The binary frames to send now, in order."""
        raise NotImplementedError

    def deadline(self) -> float | None:
        """When the handshake must be done; the shell closes with 4107 after it."""
        raise NotImplementedError

    def resume_of(self, message1: Message1, held_from: int) -> Resume:
        """What may be answered; ``held_from`` is the lowest output position that the caller can send again."""
        raise NotImplementedError

    def accept(self, resume: Resume, lineage: bytes, output_position: int) -> None:
        """Answer :class:`Offered` with yes. ``lineage``: 16 fresh random bytes for ``new``, else ``self.lineage``."""
        raise NotImplementedError

    def refuse(self, code: RefusalCode) -> None:
        """Answer :class:`Offered` with no."""
        raise NotImplementedError

    def output(self, data: bytes) -> None:
        """Send output, at most :attr:`output_credit` bytes."""
        raise NotImplementedError

    @property
    def output_credit(self) -> int:
        """Bytes of output that may be sent now; 0 when no channel is open."""
        raise NotImplementedError

    def repaint(self, data: bytes) -> None:
        """Send a whole repaint."""
        raise NotImplementedError

    def written(self, count: int) -> None:
        """That many input bytes went into the pseudo-terminal."""
        raise NotImplementedError

    def exit(self, status: int) -> None:
        """Send the exit status behind all output."""
        raise NotImplementedError

    def notice(self, text: str) -> None:
        """Send a line for the person."""
        raise NotImplementedError

    @property
    def lineage(self) -> bytes | None:
        """The current input lineage."""
        raise NotImplementedError

    @property
    def acknowledged(self) -> int:
        """Output position that the device's terminal took."""
        raise NotImplementedError

    @property
    def exit_acknowledged(self) -> bool:
        """Whether the device acknowledged up to and including EXIT."""
        raise NotImplementedError

    @property
    def output_position(self) -> int:
        """Output position that was sent."""
        raise NotImplementedError

    @property
    def open(self) -> bool:
        """Whether a channel is open."""
        raise NotImplementedError
