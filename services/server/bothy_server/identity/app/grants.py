"""Who owns a host and who may open terminals on it: owners give, owners and operators take away.

A right that is gone takes its sessions with it, in the same unit. One that ends by time is noticed by the sweep, which the
event ``rights.changed`` wakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from bothy_server.identity.app.api import find_person, hold_caller, spend_step_up
from bothy_server.identity.app.ports import RightEvents, RightStore
from bothy_server.identity.app.standing import check_manages, check_owns, host_unknown
from bothy_server.identity.domain.act import Act
from bothy_server.identity.domain.rights import Grant, Owner, may_leave
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.names import check_name
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Event, Unit, UnitOfWork
from bothy_wire.ids import HostId, PersonId, StepUpId

Holder = TypeVar("Holder", Owner, Grant)


class GrantStore(Protocol):
    """Owners and grants of a host, beside what ``RightStore`` gives."""

    async def hold(self, host_id: HostId) -> bool:
        """Hold the host's row until the unit ends, against other changes and new sessions; False when there is none."""

    async def had_device(self, person_id: PersonId) -> bool:
        """Whether the person ever signed in, also with a device that was revoked since."""

    async def owners(self, host_id: HostId) -> list[Owner]:
        """By name."""

    async def remove_owner(self, person_id: PersonId, host_id: HostId) -> None:
        """The person owns the host no longer."""

    async def grants(self, host_id: HostId) -> list[Grant]:
        """Those that count at this moment, by name and session user."""

    async def remove_grants(self, person_id: PersonId, host_id: HostId, session_user: str | None) -> None:
        """Take one grant, or all of a person."""

    async def prune(self) -> int:
        """Forget grants whose time is over; how many went."""


class Grants:
    """Use cases on owners and grants. ``caller`` is None on the server's own command line, which may do everything."""

    def __init__(self, uow: UnitOfWork, events: RightEvents) -> None:
        """``events`` ends the sessions that a right carried."""
        self._uow = uow
        self._events = events

    async def owners(self, caller: Caller | None, host_id: HostId) -> list[Owner]:
        """By name. Raises 404 ``host_unknown``."""
        async with self._uow() as unit:
            await check_manages(unit, caller, host_id)
            return await unit.of(GrantStore).owners(host_id)

    async def add_owner(
        self, caller: Caller | None, host_id: HostId, person: str, step_up_id: StepUpId | None = None
    ) -> Owner:
        """Make ``person`` (an id or a name) an owner; one who is an owner already changes nothing.

        Raises 404 ``host_unknown``, 403 ``owner_required``, 404 ``person_unknown``, 409 ``person_without_device``,
        401 ``step_up_required``.
        """
        async with self._uow() as unit:
            await _hold(unit, caller, host_id)
            await check_owns(unit, caller, host_id)
            person_id = await _receiver(unit, caller, person)
            if await unit.of(RightStore).add_owner(person_id, host_id):
                await spend_step_up(unit, caller, step_up_id, Act("manage_host", host_id))
                _tell(unit, caller, host_id, person_id, "host.owner", "added")
            (owner,) = [each for each in await unit.of(GrantStore).owners(host_id) if each.person_id == person_id]
            return owner

    async def remove_owner(
        self, caller: Caller | None, host_id: HostId, person: str, step_up_id: StepUpId | None = None
    ) -> None:
        """Take the host from ``person``, who may be disabled. The last owner who can decide about it stays.

        Raises 404 ``host_unknown``, 404 ``owner_unknown``, 409 ``last_owner``, 401 ``step_up_required``.
        """
        async with self._uow() as unit:
            await _hold(unit, caller, host_id)
            await check_manages(unit, caller, host_id)
            owners = await unit.of(GrantStore).owners(host_id)
            leaving = next(iter(_of(owners, person)), None)
            if leaving is None:
                raise Problem(
                    404, "owner_unknown", "No owner of the host is called so. `bothy hosts owners` lists them."
                )
            if not may_leave(owners, leaving.person_id):
                detail = (
                    "Nobody who can decide about the host would be left. Add another owner first, or retire the host."
                )
                raise Problem(409, "last_owner", detail)
            await spend_step_up(unit, caller, step_up_id, Act("manage_host", host_id))
            await unit.of(GrantStore).remove_owner(leaving.person_id, host_id)
            await self._events.right_lost(unit, leaving.person_id, host_id)
            _tell(unit, caller, host_id, leaving.person_id, "host.owner", "removed")

    async def grants(self, caller: Caller | None, host_id: HostId) -> list[Grant]:
        """Those that count at this moment. Raises 404 ``host_unknown``."""
        async with self._uow() as unit:
            await check_manages(unit, caller, host_id)
            return await unit.of(GrantStore).grants(host_id)

    async def grant(
        self,
        caller: Caller | None,
        host_id: HostId,
        person: str,
        session_user: str,
        expires_at: datetime | None,
        step_up_id: StepUpId | None = None,
    ) -> Grant:
        """Let ``person`` (an id or a name) open terminals as one session user; once more, with another end.

        Raises 404 ``host_unknown``, 403 ``owner_required``, 422 ``name_invalid``, 404 ``person_unknown``,
        409 ``person_without_device``, 422 ``expiry_past``, 401 ``step_up_required``.
        """
        async with self._uow() as unit:
            await _hold(unit, caller, host_id)
            await check_owns(unit, caller, host_id)
            check_name(session_user)
            person_id = await _receiver(unit, caller, person)
            had = await _grant(unit, host_id, person_id, session_user)
            if had is not None and had.expires_at == expires_at:
                return had
            if not await unit.of(RightStore).add_grant(person_id, host_id, session_user, expires_at):
                detail = "The end of the grant has passed. `bothy hosts revoke-grant` takes one away."
                raise Problem(422, "expiry_past", detail)
            await spend_step_up(unit, caller, step_up_id, Act("manage_host", host_id))
            _tell(unit, caller, host_id, person_id, "host.grant", "given" if had is None else "changed")
            made = await _grant(unit, host_id, person_id, session_user)
            assert made is not None
            return made

    async def revoke(
        self,
        caller: Caller | None,
        host_id: HostId,
        person: str,
        session_user: str | None,
        step_up_id: StepUpId | None = None,
    ) -> None:
        """Take from ``person``, who may be disabled, one session user; all of them when it is None.

        Raises 404 ``host_unknown``, 404 ``grant_unknown``, 401 ``step_up_required``.
        """
        async with self._uow() as unit:
            await _hold(unit, caller, host_id)
            await check_manages(unit, caller, host_id)
            store = unit.of(GrantStore)
            of_person = _of(await store.grants(host_id), person)
            held = [each for each in of_person if session_user in (None, each.session_user)]
            if not held:
                raise Problem(404, "grant_unknown", "There is no such grant. `bothy hosts grants` lists them.")
            person_id = held[0].person_id
            await spend_step_up(unit, caller, step_up_id, Act("manage_host", host_id))
            await store.remove_grants(person_id, host_id, session_user)
            await self._events.right_lost(unit, person_id, host_id)
            _tell(unit, caller, host_id, person_id, "host.grant", "revoked")


async def _hold(unit: Unit, caller: Caller | None, host_id: HostId) -> None:
    """First of all: what is read afterwards stays true, and no session begins behind the back of who ends them."""
    await hold_caller(unit, caller)
    if not await unit.of(GrantStore).hold(host_id):
        raise host_unknown()


async def _receiver(unit: Unit, caller: Caller | None, person: str) -> PersonId:
    """Somebody who signed in before: else an operator, who can invite them anew, could take what an owner gives them."""
    person_id = await find_person(unit, person)
    if caller is not None and not await unit.of(GrantStore).had_device(person_id):
        detail = "This person never signed in: whoever gets their invite would get the right. Let them sign in first."
        raise Problem(409, "person_without_device", detail)
    return person_id


async def _grant(unit: Unit, host_id: HostId, person_id: PersonId, session_user: str) -> Grant | None:
    held = await unit.of(GrantStore).grants(host_id)
    return next((each for each in held if (each.person_id, each.session_user) == (person_id, session_user)), None)


def _of(holders: Sequence[Holder], person: str) -> list[Holder]:
    """Those of the person with this id, else with this name."""
    by_id = [each for each in holders if str(each.person_id) == person]
    return by_id or [each for each in holders if each.person_name == person]


def _tell(
    unit: Unit,
    caller: Caller | None,
    host_id: HostId,
    person_id: PersonId,
    action: Literal["host.owner", "host.grant"],
    code: str,
) -> None:
    unit.audit(AuditEntry.by(caller, action, code, host_id=host_id, subject_person_id=person_id))
    unit.emit(Event("rights.changed", host_id=host_id, person_id=person_id))
