"""A person's devices: which there are, an invite for one more, and the end of one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from bothy_server.identity.app.api import find_device, spend_step_up
from bothy_server.identity.app.invites import Invited, Invites
from bothy_server.identity.app.passkey_proof import PasskeyStore
from bothy_server.identity.app.people import PeopleStore, person_unknown
from bothy_server.identity.app.ports import Device, RightEvents
from bothy_server.identity.app.repeats import Made, made_before, remember_made
from bothy_server.identity.app.standing import operator_required
from bothy_server.identity.domain.act import Act
from bothy_server.kernel.caller import Caller, DeviceKind, RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Event, Unit, UnitOfWork
from bothy_wire.ids import DeviceId, PersonId, StepUpId


@dataclass(frozen=True, slots=True)
class KnownDevice:
    """A device as its person sees it in a list. ``added_by`` says how it was let in."""

    id: DeviceId
    person_id: PersonId
    name: str
    kind: DeviceKind
    added_by: Literal["invite", "passkey", "approval"]
    channel_key: bytes
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class DeviceStore(Protocol):
    """Rows of devices as their person manages them."""

    async def of_person(self, person_id: PersonId) -> list[KnownDevice]:
        """All of a person, oldest first, with those that are revoked."""

    async def lock(self, device_ids: Collection[DeviceId]) -> dict[DeviceId, KnownDevice]:
        """These, held against other writers until the unit ends, in one order."""

    async def revoke(self, device_id: DeviceId) -> KnownDevice:
        """It may do nothing from now on; its challenges, step-ups and waiting login are forgotten."""

    async def forget_invites(self, person_id: PersonId) -> None:
        """Forget the invites of this person that were not used yet."""


class Devices:
    """Use cases about devices. ``caller`` is None on the server's own command line, which needs no confirmation."""

    def __init__(self, uow: UnitOfWork, invites: Invites, events: RightEvents) -> None:
        """``events`` ends what a revoked device has running."""
        self._uow = uow
        self._invites = invites
        self._events = events

    async def own(self, caller: Caller) -> Device:
        """The caller's device, with its person."""
        async with self._uow() as unit:
            return await _own(unit, caller)

    async def list(self, caller: Caller | None, person_id: PersonId) -> list[KnownDevice]:
        """The devices of the caller, or of anybody to an operator. Raises 403 ``operator_required``, 404 ``person_unknown``."""
        if caller is not None and caller.person_id != person_id and not caller.is_operator:
            raise operator_required()
        async with self._uow() as unit:
            if await unit.of(PeopleStore).get(person_id) is None:
                raise person_unknown()
            return await unit.of(DeviceStore).of_person(person_id)

    async def invite(self, caller: Caller, step_up_id: StepUpId, repeat: RepeatKey | None = None) -> Invited:
        """An invite for one more device of the caller."""
        async with self._uow() as unit:
            own = await _own(unit, caller)
            if await made_before(unit, caller, repeat) is not None:
                return Invited(own.person_id, own.person_name, None, None)
            await spend_step_up(unit, caller, step_up_id, Act("manage_account"))
            unit.audit(_entry("invite.create", "own", caller, own.person_id))
            invited = await self._invites.make(unit, own.person_id, own.person_name)
            await remember_made(unit, caller, repeat, Made(own.person_id))
        return invited

    async def revoke(
        self, device_id: DeviceId, caller: Caller | None = None, step_up_id: StepUpId | None = None
    ) -> KnownDevice:
        """End a device and all that runs on it, at once and everywhere. One that is revoked stays as it is.

        Invites that are open for its person go too, since it may have made them, and passkeys that were added with it: they
        are most likely inside it. Raises 404 ``device_unknown`` also for
        somebody else's, unless the caller is an operator.
        """
        async with self._uow() as unit:
            locked = await _lock(unit, device_id, caller)
            found = locked.get(device_id)
            own = found is not None and caller is not None and found.person_id == caller.person_id
            if found is None or not (caller is None or own or caller.is_operator):
                raise device_unknown()
            if found.revoked_at is not None:
                return found
            await spend_step_up(unit, caller, step_up_id, Act("manage_account" if own else "manage_relay"))
            unit.audit(_entry("device.revoke", "revoked", caller, found.person_id, device_id))
            revoked = await self._end(unit, device_id)
            # Behind the end of its step-ups, which waits for an invite that it is just making.
            await unit.of(DeviceStore).forget_invites(found.person_id)
            if await unit.of(PasskeyStore).remove_added_with(device_id):
                unit.audit(_entry("passkey.remove", "device_revoked", caller, found.person_id, device_id))
            return revoked

    async def log_out(self, caller: Caller) -> KnownDevice:
        """The device gives itself up. Nobody need confirm that; the person's invites and passkeys stay good."""
        async with self._uow() as unit:
            await _lock(unit, caller.device_id, caller)
            unit.audit(_entry("device.logout", "logged_out", caller, caller.person_id, caller.device_id))
            return await self._end(unit, caller.device_id)

    async def _end(self, unit: Unit, device_id: DeviceId) -> KnownDevice:
        revoked = await unit.of(DeviceStore).revoke(device_id)
        await self._events.device_revoked(unit, device_id)
        unit.emit(Event("rights.changed", person_id=revoked.person_id, device_id=device_id))
        return revoked


def device_unknown() -> Problem:
    """One answer for a device that does not exist and one of somebody else."""
    detail = "You have no such device. `bothy devices` lists yours, `bothy-server device list PERSON` anybody's."
    return Problem(404, "device_unknown", detail)


async def _lock(unit: Unit, device_id: DeviceId, caller: Caller | None) -> dict[DeviceId, KnownDevice]:
    """The device, and the caller's own: of two that revoke one another at once the second is none any more."""
    locked = await unit.of(DeviceStore).lock({device_id} if caller is None else {device_id, caller.device_id})
    if caller is not None and locked[caller.device_id].revoked_at is not None:
        raise Problem(401, "token_invalid", "This device was revoked.")
    return locked


async def _own(unit: Unit, caller: Caller) -> Device:
    found = await find_device(unit, caller.device_id)
    assert found is not None  # rows of devices stay
    return found


def _entry(
    action: str, code: str, caller: Caller | None, subject: PersonId, subject_device: DeviceId | None = None
) -> AuditEntry:
    return AuditEntry.by(caller, action, code, subject_person_id=subject, subject_device_id=subject_device)
