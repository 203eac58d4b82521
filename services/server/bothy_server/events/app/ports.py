"""What events need from rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from bothy_server.events.domain.sight import Sight
from bothy_server.kernel.tail import LoggedEvent
from bothy_wire.ids import DeviceId, PersonId


@dataclass(frozen=True, slots=True)
class Edges:
    """Positions of the event log: up to the floor rows may be gone, the head is the last one."""

    floor: int
    head: int


class SightStore(Protocol):
    """Who may see what."""

    async def sights(self, devices: Collection[DeviceId]) -> dict[DeviceId, Sight]:
        """What the person of each device may see at this moment; none of a device that may not act any more."""

    async def persons(self, sessions: Collection[UUID]) -> dict[UUID, PersonId]:
        """Whose sessions these are."""


class LogStore(Protocol):
    """The event log."""

    async def edges(self) -> Edges:
        """As they are now."""

    async def behind(self, position: int, limit: int) -> list[LoggedEvent]:
        """The first events behind a position, oldest first."""
