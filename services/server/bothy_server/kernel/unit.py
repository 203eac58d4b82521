"""The unit of work: one transaction for one use case, and what it tells the world after its commit.

``async with uow() as unit:`` gives stores bound to the transaction (``unit.of(HostStore)``) and collects events, audit
entries and signals. Leaving the block writes the collected things as the last statement and commits; an exception rolls
back, and then nothing is sent (``docs/spec/data.md``, Unit of work).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, Self, TypeVar
from uuid import UUID

from bothy_server.kernel.caller import Caller

EventType = Literal["terminal_session.changed", "host.updated", "node.changed", "rights.changed", "keys.changed"]


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the event log: a type and the ids of what changed, nothing else."""

    type: EventType
    host_id: UUID | None = None
    session_id: UUID | None = None
    person_id: UUID | None = None
    device_id: UUID | None = None
    node_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One decision. ``action`` is from a closed list (``AUDIT_ACTIONS`` in ``platform/audit.py``); never any content.

    ``person_id`` and ``device_id`` acted; a decision about somebody, or about another device, names them as its subject.
    """

    action: str
    code: str
    person_id: UUID | None = None
    device_id: UUID | None = None
    host_id: UUID | None = None
    session_id: UUID | None = None
    subject_person_id: UUID | None = None
    subject_device_id: UUID | None = None

    @classmethod
    def by(cls, caller: Caller | None, action: str, code: str, **about: UUID | None) -> Self:
        """Of what ``caller`` did, or the server's own command line (None), which nobody is signed in to."""
        if caller is None:
            return cls(action, code, **about)
        return cls(action, code, person_id=caller.person_id, device_id=caller.device_id, **about)


@dataclass(frozen=True, slots=True)
class Signal:
    """Base of the signals of all features: a kind, and fields that are ids (``docs/spec/cluster.md``, S1)."""

    kind: ClassVar[str]


S = TypeVar("S")


class Unit(Protocol):
    """One open transaction."""

    def of(self, store: type[S]) -> S:
        """The store behind port ``store``, bound to this transaction."""

    def emit(self, event: Event) -> None:
        """Append an event at commit."""

    def audit(self, entry: AuditEntry) -> None:
        """Append an audit entry at commit."""

    def stage(self, signal: Signal) -> None:
        """Send a signal if, and only after, the transaction commits."""


class UnitOfWork(Protocol):
    """Opens units. Raises :class:`StorageUnavailable` when the database cannot be used."""

    def __call__(self) -> AbstractAsyncContextManager[Unit]:
        """One transaction; see the module."""


class SignalTransport(Protocol):
    """How staged signals leave (``docs/spec/cluster.md``, S4)."""

    def payloads(self, signals: Sequence[Signal]) -> list[str]:
        """What the transaction itself notifies at its commit, one text for each; empty for a local transport."""

    def committed(self, signals: Sequence[Signal]) -> None:
        """The transaction that staged these is committed. Neither blocks nor raises."""


class StorageUnavailable(Exception):  # noqa: N818 - names the state
    """The database is away, too slow or refuses. Callers answer 503 or close code 1013."""
