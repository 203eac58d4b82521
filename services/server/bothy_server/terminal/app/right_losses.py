"""The end of the sessions that a right, a device or an account carried, in the unit that takes it away."""

from __future__ import annotations

from typing import Protocol

from bothy_server.identity.app.api import right_of
from bothy_server.kernel.unit import Unit
from bothy_server.terminal.app.open_session import end_sessions
from bothy_server.terminal.app.ports import SessionRecord
from bothy_wire.ids import DeviceId, HostId, PersonId


class CarriedStore(Protocol):
    """Sessions that are not closed, by what carries them."""

    async def of_device(self, device_id: DeviceId) -> list[SessionRecord]:
        """Those that the device holds: it made the newest open or attach."""

    async def of_person(self, person_id: PersonId, host_id: HostId | None = None) -> list[SessionRecord]:
        """Those of the person, everywhere or on one host."""


class RightLosses:
    """Implements identity's port ``RightEvents``.

    Nodes learn of the ends from the event log, as of every other end. One that cannot hear asks for the right again at
    the next pairing (``docs/spec/cluster.md``, E4).
    """

    async def device_revoked(self, unit: Unit, device_id: DeviceId) -> None:
        """See ``RightEvents``."""
        await _end(unit, await unit.of(CarriedStore).of_device(device_id))

    async def person_disabled(self, unit: Unit, person_id: PersonId) -> None:
        """See ``RightEvents``."""
        await _end(unit, await unit.of(CarriedStore).of_person(person_id))

    async def right_lost(self, unit: Unit, person_id: PersonId, host_id: HostId) -> None:
        """See ``RightEvents``."""
        right = await right_of(unit, person_id, host_id)
        carried = await unit.of(CarriedStore).of_person(person_id, host_id)
        await _end(unit, [each for each in carried if right is None or not right.allows(each.session_user)])


async def _end(unit: Unit, sessions: list[SessionRecord]) -> None:
    if sessions:
        await end_sessions(unit, [each.id for each in sessions], "revoked")
