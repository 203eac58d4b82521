"""What a rendezvous asks for. The shell does it in the order given; none of it waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bothy_server.terminal.domain.lone_side import SideName
from bothy_wire.close_codes import CloseCode

Ending = Literal["open_timeout", "start_timeout", "revoked"]


@dataclass(frozen=True, slots=True)
class ReadRow:
    """Read the row for this connection, begun now or later, and answer with :class:`RowRead` (E2a)."""

    conn: int


@dataclass(frozen=True, slots=True)
class Accept:
    """Write ``side.accepted``."""

    conn: int


@dataclass(frozen=True, slots=True)
class Close:
    """Close this connection. Both sides of a pair at once: the device's close frame goes behind all that was read."""

    conn: int
    code: CloseCode
    reason: str


@dataclass(frozen=True, slots=True)
class Check:
    """Run the check's one statement (E4) with the device side's ``seq`` and answer with :class:`Checked`."""

    pairing: int
    device: int
    host: int
    seq: int


@dataclass(frozen=True, slots=True)
class Join:
    """Write ``side.paired`` to both, to the device with the token, then forward."""

    pairing: int
    device: int
    host: int
    token: str


@dataclass(frozen=True, slots=True)
class Part:
    """Stop forwarding, fill open messages on both, write ``side.unpaired`` to ``stays``, drop its binary until it is ready."""

    pairing: int
    stays: int
    leaves: int


@dataclass(frozen=True, slots=True)
class WriteDetached:
    """Write ``detached`` where the row is ``active`` and its ``paired_seq`` is this one (E4b)."""

    paired_seq: int


@dataclass(frozen=True, slots=True)
class EndRow:
    """End the row by compare-and-swap.

    ``open_timeout`` only while ``opening`` with ``paired_at`` null, ``start_timeout`` only while ``opening``.
    """

    detail: Ending


@dataclass(frozen=True, slots=True)
class Count:
    """Raise ``bothy.terminal.relay.unpaired``."""

    side: SideName


@dataclass(frozen=True, slots=True)
class Redial:
    """Send ``session_redial``."""


@dataclass(frozen=True, slots=True)
class TellPaired:
    """Send ``session_paired``."""


Effect: TypeAlias = (
    ReadRow | Accept | Close | Check | Join | Part | WriteDetached | EndRow | Count | Redial | TellPaired
)
