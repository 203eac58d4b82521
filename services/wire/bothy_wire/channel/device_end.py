"""The device's end of the end-to-end channel, without I/O and without a clock."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_wire.channel.flow import Limits
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
    """Bytes for the terminal; report them with :meth:`DeviceEnd.processed` when it took them."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Repaint:
    """A piece of a repaint for the terminal; counts in no position, so it is not reported."""

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


class DeviceEnd:
    """One session as the device sees it; lives over many pairings."""

    def __init__(
        self,
        *,
        channel_key: X25519PrivateKey,
        host_channel_key: bytes,
        session_id: UUID,
        host_id: UUID,
        profile: str,
        session_user: str,
        term: str,
        limits: Limits,
    ) -> None:
        raise NotImplementedError

    def pair(self, session_token: str, columns: int, rows: int, now: float) -> None:
        """``side.paired`` came: start a fresh handshake."""
        raise NotImplementedError

    def unpaired(self) -> None:
        """``side.unpaired`` came or the socket is lost: the channel is gone, the counts are kept."""
        raise NotImplementedError

    def receive(self, message: bytes, now: float) -> list[DeviceEvent]:
        """One binary frame."""
        raise NotImplementedError

    def take_outgoing(self) -> list[bytes]:
        """The binary frames to send now, in order."""
        raise NotImplementedError

    def deadline(self) -> float | None:
        """When the handshake must be done; the shell closes with 4107 after it."""
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        """Keys typed."""
        raise NotImplementedError

    @property
    def pending_input(self) -> int:
        """Bytes typed that the host has not acknowledged as written."""
        raise NotImplementedError

    @property
    def unsent_input(self) -> int:
        """Of these, the bytes not sent yet."""
        raise NotImplementedError

    def drop_unsent(self) -> int:
        """Forget what was not sent; returns how many bytes."""
        raise NotImplementedError

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has a new size."""
        raise NotImplementedError

    def processed(self, count: int) -> None:
        """The terminal took that many bytes of output."""
        raise NotImplementedError

    def flush(self) -> None:
        """Acknowledge now what was processed."""
        raise NotImplementedError

    def ping(self, now: float) -> None:
        """Measure the round trip."""
        raise NotImplementedError

    @property
    def round_trip(self) -> float | None:
        """Seconds of the last ping."""
        raise NotImplementedError

    @property
    def open(self) -> bool:
        """Whether a channel is open."""
        raise NotImplementedError

    @property
    def opened_once(self) -> bool:
        """Whether a channel was ever open."""
        raise NotImplementedError
