"""What one node tells the others about sessions (``docs/spec/signals.md``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bothy_server.kernel.unit import Signal
from bothy_wire.ids import HostId, SessionId


@dataclass(frozen=True, slots=True)
class SessionOpen(Signal):
    """A session was opened or attached: expect its sides; who holds the host's control connection asks it to dial."""

    kind: ClassVar[str] = "terminal.session_open"
    host_id: HostId
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class SessionPaired(Signal):
    """Both sides met on one node, and the host asks its own person first: the others' expectation must end nothing."""

    kind: ClassVar[str] = "terminal.session_paired"
    host_id: HostId
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class SessionRedial(Signal):
    """A device side of a running session is alone: who holds the host's control connection asks it to dial again."""

    kind: ClassVar[str] = "terminal.session_redial"
    host_id: HostId
    session_id: SessionId
