"""What a person may see of what happens: never more than REST would show them when they asked (``docs/spec/protocol.md``, Events)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from bothy_server.kernel.unit import Event
from bothy_wire.ids import PersonId


@dataclass(frozen=True, slots=True)
class Sight:
    """A person at one moment: the hosts that they own, and those on which they hold a grant."""

    person_id: PersonId
    is_operator: bool
    owned: frozenset[UUID]
    granted: frozenset[UUID]

    def sees_host(self, host_id: UUID | None) -> bool:
        """Whether the host is in the person's list."""
        return self.is_operator or host_id in self.owned or host_id in self.granted

    def sees(self, event: Event, persons: Mapping[UUID, PersonId]) -> bool:
        """Whether the person is told of this event; ``persons`` has those of the sessions that events name."""
        match event.type:
            case "terminal_session.changed":
                own = event.session_id is not None and persons.get(event.session_id) == self.person_id
                return own or self._oversees(event)
            case "host.updated":
                return self.sees_host(event.host_id)
            case "rights.changed":
                return event.person_id == self.person_id or self._oversees(event)
            case "node.changed":
                return self.is_operator
            case "keys.changed":
                return False

    def _oversees(self, event: Event) -> bool:
        return self.is_operator or event.host_id in self.owned
