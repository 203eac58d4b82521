"""REST of persons, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from bothy_server.identity.adapters.http.devices import DeviceList, InviteMade, device_list, invite_made
from bothy_server.identity.app.devices import Devices
from bothy_server.identity.app.people import People, Person, person_unknown
from bothy_server.platform.operations import Call, operation
from bothy_wire.frames import Name
from bothy_wire.ids import PersonId, StepUpId


class PersonBody(msgspec.Struct, frozen=True, kw_only=True):
    """A person. ``devices`` counts those that are not revoked; ``last_used_at`` is of the last that signed in."""

    person_id: UUID
    name: str
    is_operator: bool
    state: Literal["enabled", "disabled"]
    devices: int
    created_at: datetime
    disabled_at: datetime | None
    last_used_at: datetime | None


class PersonList(msgspec.Struct, frozen=True):
    """Persons by name."""

    persons: list[PersonBody]


class PersonWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person to add. ``step_up_id`` is of the purpose ``manage_relay``."""

    name: Name
    is_operator: bool
    step_up_id: UUID


class PersonInviteWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``step_up_id`` is of the purpose ``manage_relay``."""

    step_up_id: UUID


class PersonStateWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a person may act. ``step_up_id`` is of the purpose ``manage_relay``."""

    state: Literal["enabled", "disabled"]
    step_up_id: UUID


@dataclass(frozen=True, slots=True)
class Persons:
    """What operators do about persons."""

    people: People
    devices: Devices

    @operation("GET", "/api/v1/persons", refuses={403: ("operator_required",)})
    async def list_persons(self, call: Call[None]) -> PersonList:
        """Everybody, by name. Operators only."""
        return PersonList([_body(each) for each in await self.people.list(call.caller)])

    @operation(
        "POST",
        "/api/v1/persons",
        201,
        refuses={
            401: ("step_up_required",),
            403: ("operator_required",),
            409: ("person_exists",),
            422: ("name_invalid",),
        },
        repeatable=True,
    )
    async def add_person(self, call: Call[PersonWanted]) -> InviteMade:
        """Add a person, with the invite for their first device. Operators only."""
        body = call.body
        return invite_made(
            await self.people.add(
                body.name,
                is_operator=body.is_operator,
                caller=call.caller,
                step_up_id=StepUpId(body.step_up_id),
                repeat=call.repeat,
            )
        )

    @operation(
        "POST",
        "/api/v1/persons/{person_id}/invites",
        201,
        refuses={
            401: ("step_up_required",),
            403: ("operator_required",),
            404: ("person_unknown",),
            409: ("person_disabled", "person_has_device"),
        },
        repeatable=True,
    )
    async def invite_person(self, call: Call[PersonInviteWanted]) -> InviteMade:
        """A new invite for somebody who never had a device. Operators only.

        For somebody who has one it would be a way to become them; they add more devices by themselves.
        """
        step_up_id = StepUpId(call.body.step_up_id)
        return invite_made(await self.people.invite(_person_id(call), call.caller, step_up_id, call.repeat))

    @operation(
        "POST",
        "/api/v1/persons/{person_id}/state",
        refuses={
            401: ("step_up_required",),
            403: ("operator_required",),
            404: ("person_unknown",),
            409: ("last_operator",),
        },
    )
    async def set_person_state(self, call: Call[PersonStateWanted]) -> PersonBody:
        """Disable or enable a person. Who is disabled loses all that runs, at once. Operators only."""
        enabled, step_up_id = call.body.state == "enabled", StepUpId(call.body.step_up_id)
        person = await self.people.set_state(
            _person_id(call), enabled=enabled, caller=call.caller, step_up_id=step_up_id
        )
        return _body(person)

    @operation(
        "GET",
        "/api/v1/persons/{person_id}/devices",
        refuses={403: ("operator_required",), 404: ("person_unknown",)},
    )
    async def list_person_devices(self, call: Call[None]) -> DeviceList:
        """The devices of a person: one's own, or anybody's to an operator."""
        return device_list(await self.devices.list(call.caller, _person_id(call)))


def _person_id(call: Call[PersonInviteWanted] | Call[PersonStateWanted] | Call[None]) -> PersonId:
    return PersonId(call.path_id("person_id", person_unknown()))


def _body(person: Person) -> PersonBody:
    return PersonBody(
        person_id=person.id,
        name=person.name,
        is_operator=person.is_operator,
        state="enabled" if person.disabled_at is None else "disabled",
        devices=person.devices,
        created_at=person.created_at,
        disabled_at=person.disabled_at,
        last_used_at=person.last_used_at,
    )
