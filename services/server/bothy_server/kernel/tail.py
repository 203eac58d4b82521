"""Following the event log: what a feature needs in order to hear of changes that other processes made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bothy_server.kernel.unit import Event


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event with its place in the log. Positions grow; numbers are left out."""

    position: int
    event: Event
    created_at: datetime


class TailSubscriber(Protocol):
    """Hears of changes. Both calls are awaited before the log is read on, so they hand long work to somebody else.

    :class:`~bothy_server.kernel.unit.StorageUnavailable` out of either makes the tail dial again, which is a gap.
    """

    async def on_events(self, events: Sequence[LoggedEvent]) -> None:
        """What was committed since the last call, oldest first, nothing left out."""

    async def on_gap(self) -> None:
        """Events may have been missed: read the rows of everything that is registered here."""


class EventTail(Protocol):
    """One reader of the log per process (``docs/spec/data.md``, Tail)."""

    def subscribe(self, subscriber: TailSubscriber) -> None:
        """From now on ``subscriber`` hears of every batch and every gap."""

    @property
    def last_current_at(self) -> float | None:
        """Steady instant at which everything committed until then was delivered; None before the first time."""
