"""A host and the states it goes through (``docs/spec/data.md``)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Literal
from uuid import UUID

from bothy_wire.close_codes import CloseCode
from bothy_wire.ids import ConnId, HostId

DUPLICATE_CONNECTION = "duplicate_connection"
"""Why a host is disabled whose key two machines hold."""
OPERATOR = "operator"
"""Why a host is disabled that a person disabled."""


class HostState(StrEnum):
    """``pending`` until an owner confirms the keys of a pairing; only ``active`` hosts run sessions."""

    PENDING = "pending"
    ACTIVE = "active"
    DISABLED = "disabled"
    RETIRED = "retired"


HostAct = Literal["confirm", "disable", "duplicate", "enable", "retire", "code"]
"""What moves a host: its owner's confirmation, a decision, the duplicate verdict, a new pairing code."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One allowed move."""

    source: HostState
    target: HostState
    act: HostAct


TRANSITIONS = (
    Transition(HostState.PENDING, HostState.ACTIVE, "confirm"),
    Transition(HostState.ACTIVE, HostState.DISABLED, "disable"),
    Transition(HostState.ACTIVE, HostState.DISABLED, "duplicate"),
    Transition(HostState.DISABLED, HostState.ACTIVE, "enable"),
    Transition(HostState.PENDING, HostState.RETIRED, "retire"),
    Transition(HostState.ACTIVE, HostState.RETIRED, "retire"),
    Transition(HostState.DISABLED, HostState.RETIRED, "retire"),
    Transition(HostState.ACTIVE, HostState.PENDING, "code"),
    Transition(HostState.DISABLED, HostState.PENDING, "code"),
)


def sources(act: HostAct) -> frozenset[HostState]:
    """The states in which ``act`` may find a host."""
    return frozenset(move.source for move in TRANSITIONS if move.act == act)


@dataclass(frozen=True, slots=True)
class Host:
    """The row of a host."""

    id: HostId
    name: str
    state: HostState
    disabled_reason: str | None
    signing_key: bytes | None
    channel_key: bytes | None
    pairing_seq: int
    boot_id: UUID | None
    last_conn_id: ConnId | None
    join_confirmed: int
    join_offered: int
    profiles: MappingProxyType[str, tuple[str, ...]]
    require_local_confirm: bool
    last_seen_at: datetime | None

    @property
    def paired(self) -> bool:
        """Whether a host service holds the keys of this row."""
        return self.signing_key is not None and self.channel_key is not None


def close_code(host: Host | None, pairing_seq: int) -> CloseCode | None:
    """Why a control connection of this pairing has to go, or None when it may stay.

    ``host`` is the row as read now, None when there is no such row.
    """
    if host is None or not host.paired or pairing_seq < host.pairing_seq:
        return CloseCode.HOST_REPAIRED
    match host.state:
        case HostState.PENDING | HostState.ACTIVE:
            return None
        case HostState.DISABLED if host.disabled_reason == DUPLICATE_CONNECTION:
            return CloseCode.DUPLICATE_CONNECTION
        case HostState.DISABLED | HostState.RETIRED:
            return CloseCode.HOST_DISABLED
