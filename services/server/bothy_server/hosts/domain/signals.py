"""What one node tells the others about hosts (``docs/spec/signals.md``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bothy_server.kernel.unit import Signal
from bothy_wire.ids import ConnId, HostId


@dataclass(frozen=True, slots=True)
class HostClose(Signal):
    """A host left ``active`` or was paired again: read its row and close what may not stay."""

    kind: ClassVar[str] = "terminal.host_close"
    host_id: HostId


@dataclass(frozen=True, slots=True)
class HostPresent(Signal):
    """Its control connection lives on the node that says so."""

    kind: ClassVar[str] = "terminal.host_present"
    host_id: HostId
    conn_id: ConnId


@dataclass(frozen=True, slots=True)
class HostGone(Signal):
    """That control connection closed."""

    kind: ClassVar[str] = "terminal.host_gone"
    host_id: HostId
    conn_id: ConnId
