"""Persons as operators manage them, and the command line of the server: who there is, who may act, who is invited."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bothy_server.identity.app.api import spend_step_up
from bothy_server.identity.app.invites import Invited, Invites
from bothy_server.identity.app.ports import PersonStore, RightEvents
from bothy_server.identity.app.repeats import Made, made_before, remember_made
from bothy_server.identity.app.standing import operator_required
from bothy_server.identity.domain.act import Act
from bothy_server.kernel.caller import Caller, RepeatKey
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.names import check_name
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Event, Unit, UnitOfWork
from bothy_wire.ids import PersonId, StepUpId


def person_unknown(named: str = "There is no such person.") -> Problem:
    """``named`` says it with the name where one was given."""
    return Problem(404, "person_unknown", f"{named} `bothy-server person list` shows all.")


@dataclass(frozen=True, slots=True)
class Person:
    """A person with a count of the devices that are not revoked, and when the last of all was used."""

    id: PersonId
    name: str
    is_operator: bool
    created_at: datetime
    disabled_at: datetime | None
    devices: int
    had_devices: bool
    """Also when all of them are revoked."""
    last_used_at: datetime | None


class PeopleStore(Protocol):
    """Rows of persons as a whole."""

    async def all(self) -> list[Person]:
        """Everybody, by name."""

    async def get(self, person_id: PersonId) -> Person | None:
        """One of them."""

    async def lock(self, person_id: PersonId) -> Person | None:
        """One of them, to whom no device comes and who is not disabled until the unit ends."""

    async def find(self, name: str) -> Person | None:
        """By exact name, also one that is disabled."""

    async def hold_operators(self) -> Collection[PersonId]:
        """The operators who are not disabled. Nobody becomes or stops being one until the unit ends."""

    async def set_disabled(self, person_id: PersonId, *, disabled: bool) -> bool:
        """Whether that was a change."""

    async def set_operator(self, person_id: PersonId, *, is_operator: bool) -> bool:
        """Whether that was a change."""

    async def forget_open(self, person_id: PersonId) -> None:
        """Forget the invites, challenges, step-ups and logins of this person that were not used yet."""


class People:
    """Use cases about persons. ``caller`` is None on the server's own command line, which needs no confirmation."""

    def __init__(self, uow: UnitOfWork, clock: Clock, invites: Invites, events: RightEvents) -> None:
        """``events`` ends what a person who is disabled has running."""
        self._uow = uow
        self._clock = clock
        self._invites = invites
        self._events = events

    async def list(self, caller: Caller | None) -> list[Person]:
        """Everybody, by name. Raises 403 ``operator_required``."""
        if caller is not None and not caller.is_operator:
            raise operator_required()
        async with self._uow() as unit:
            return await unit.of(PeopleStore).all()

    async def find(self, name: str) -> Person:
        """By name; for the command line. Raises 404 ``person_unknown``."""
        async with self._uow() as unit:
            found = await unit.of(PeopleStore).find(name)
        if found is None:
            raise person_unknown(f"There is no person called {name}.")
        return found

    async def add(
        self,
        name: str,
        *,
        is_operator: bool,
        caller: Caller | None = None,
        step_up_id: StepUpId | None = None,
        repeat: RepeatKey | None = None,
    ) -> Invited:
        """A new person and the invite for their first device. Raises 409 ``person_exists``."""
        check_name(name)
        person_id = PersonId(new_id(self._clock.now()))
        async with self._uow() as unit:
            if (made := await made_before(unit, caller, repeat)) is not None:
                return await _invited_before(unit, made)
            await _check_operator(unit, caller)
            if not await unit.of(PersonStore).add_person(person_id, name, is_operator=is_operator):
                raise Problem(409, "person_exists", f"There is a person called {name} already.")
            await spend_step_up(unit, caller, step_up_id, Act("manage_relay"))
            unit.audit(_entry("person.add", "operator" if is_operator else "person", person_id, caller))
            invited = await self._invites.make(unit, person_id, name)
            await remember_made(unit, caller, repeat, Made(person_id))
        return invited

    async def invite(
        self,
        person_id: PersonId,
        caller: Caller | None = None,
        step_up_id: StepUpId | None = None,
        repeat: RepeatKey | None = None,
    ) -> Invited:
        """An invite for a device of this person.

        An operator who invites a device for somebody who works already could become them, and so gain their terminals:
        only the command line of the server does that. Raises 404 ``person_unknown``, 409 ``person_has_device``,
        ``person_disabled``.
        """
        async with self._uow() as unit:
            if (made := await made_before(unit, caller, repeat)) is not None:
                return await _invited_before(unit, made)
            await _check_operator(unit, caller)
            person = await unit.of(PeopleStore).lock(person_id)
            if person is None:
                raise person_unknown()
            if person.disabled_at is not None:
                raise Problem(409, "person_disabled", f"{person.name} is disabled; enable them first.")
            if caller is not None and person.had_devices:
                raise Problem(
                    409,
                    "person_has_device",
                    f"{person.name} has a device already, and adds more there (`bothy devices invite`). For somebody who"
                    " lost them all: `bothy-server person invite` on the server.",
                )
            await spend_step_up(unit, caller, step_up_id, Act("manage_relay"))
            unit.audit(_entry("invite.create", "created", person_id, caller))
            invited = await self._invites.make(unit, person_id, person.name)
            await remember_made(unit, caller, repeat, Made(person_id))
        return invited

    async def set_state(
        self, person_id: PersonId, *, enabled: bool, caller: Caller | None = None, step_up_id: StepUpId | None = None
    ) -> Person:
        """Disable or enable a person; the state that they have already changes nothing.

        Who is disabled loses all that runs, at once and everywhere. Devices stay theirs. Raises 404 ``person_unknown``,
        409 ``last_operator``.
        """
        async with self._uow() as unit:
            store = unit.of(PeopleStore)
            operators = await _check_operator(unit, caller)
            await _person(unit, person_id)
            if caller is not None and not enabled and operators == {person_id}:
                raise Problem(409, "last_operator", "You are the last operator: make another one before you leave.")
            if await store.set_disabled(person_id, disabled=not enabled):
                await spend_step_up(unit, caller, step_up_id, Act("manage_relay"))
                if not enabled:
                    await store.forget_open(person_id)
                    await self._events.person_disabled(unit, person_id)
                unit.audit(_entry("person.state", "enabled" if enabled else "disabled", person_id, caller))
                unit.emit(Event("rights.changed", person_id=person_id))
            return await _person(unit, person_id)

    async def set_operator(self, person_id: PersonId, *, is_operator: bool) -> Person:
        """Make somebody an operator, or no operator any more; only the command line of the server does that."""
        async with self._uow() as unit:
            await unit.of(PeopleStore).hold_operators()
            if await unit.of(PeopleStore).set_operator(person_id, is_operator=is_operator):
                unit.audit(_entry("person.state", "operator" if is_operator else "no_operator", person_id, None))
                unit.emit(Event("rights.changed", person_id=person_id))
            return await _person(unit, person_id)


async def _check_operator(unit: Unit, caller: Caller | None) -> Collection[PersonId]:
    """The operators, held: of two who disable one another at once the second is none any more."""
    operators = await unit.of(PeopleStore).hold_operators()
    if caller is not None and caller.person_id not in operators:
        raise operator_required()
    return operators


async def _person(unit: Unit, person_id: PersonId) -> Person:
    found = await unit.of(PeopleStore).get(person_id)
    if found is None:
        raise person_unknown()
    return found


async def _invited_before(unit: Unit, made: Made) -> Invited:
    person = await _person(unit, PersonId(made.id))
    return Invited(person.id, person.name, None, None)


def _entry(action: str, code: str, subject: PersonId, caller: Caller | None) -> AuditEntry:
    return AuditEntry.by(caller, action, code, subject_person_id=subject)
