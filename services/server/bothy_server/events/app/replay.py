"""What a reader missed: read from the event log, a batch at a time, as far as the log goes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from bothy_server.events.app.feed import Told
from bothy_server.events.app.ports import Edges, LogStore, SightStore
from bothy_server.events.domain.sight import Sight
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import Unit, UnitOfWork
from bothy_wire.ids import DeviceId, PersonId

_IDS: Mapping[str, tuple[str, ...]] = {
    "terminal_session.changed": ("session_id", "host_id"),
    "host.updated": ("host_id",),
    "rights.changed": ("person_id", "device_id", "host_id"),
    "node.changed": ("node_id",),
    "keys.changed": (),
}
"""What each event names."""


@dataclass(frozen=True, slots=True)
class ReplayLimits:
    """Numbers of events (keys ``events.max_replayed``, ``event_log.batch``)."""

    most: int
    batch: int


def reset(position: int) -> Told:
    """The reader may have missed something: it reads everything anew, and goes on from here."""
    return Told("reset", {}, position)


def told(logged: LoggedEvent) -> Told:
    """An event of the log as its readers are told of it."""
    ids = {name: getattr(logged.event, name) for name in _IDS[logged.event.type]}
    return Told(logged.event.type, {**ids, "at": logged.created_at}, logged.position)


async def persons_in(unit: Unit, events: Iterable[LoggedEvent]) -> dict[UUID, PersonId]:
    """The persons of the sessions that events name."""
    sessions = {each.event.session_id for each in events if each.event.session_id is not None}
    return await unit.of(SightStore).persons(sessions) if sessions else {}


async def replay(
    uow: UnitOfWork, device_id: DeviceId, after: int | None, limits: ReplayLimits
) -> AsyncIterator[tuple[Told, ...]]:
    """Batch after batch of what the device's person may see behind ``after``; each ends with how far it came.

    From None, and from where the log cannot be continued, there is one ``reset`` instead. A device that may not act is
    told nothing.
    """
    position, more = after, True
    batch: tuple[Told, ...]
    while more:
        async with uow() as unit:
            edges = await unit.of(LogStore).edges()
            sight = (await unit.of(SightStore).sights([device_id])).get(device_id)
            if sight is None:
                return
            if position is None or not _continues(position, edges, limits.most):
                batch, more = (reset(edges.head),), False
            else:
                events = await unit.of(LogStore).behind(position, limits.batch)
                batch, more = await _seen(unit, sight, events, position), len(events) == limits.batch
        yield batch
        position = batch[-1].position


def _continues(position: int, edges: Edges, most: int) -> bool:
    return max(edges.floor, edges.head - most) <= position <= edges.head


async def _seen(unit: Unit, sight: Sight, events: list[LoggedEvent], position: int) -> tuple[Told, ...]:
    persons = await persons_in(unit, events)
    reached = events[-1].position if events else position
    return (*(told(each) for each in events if sight.sees(each.event, persons)), Told(None, {}, reached))
