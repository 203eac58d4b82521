"""REST of who owns a host and who may open terminals on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from bothy_server.identity.app.api import Attempts, host_unknown
from bothy_server.identity.app.grants import Grants
from bothy_server.identity.domain.rights import Grant, Owner
from bothy_server.platform.operations import Call, Empty, operation
from bothy_wire.frames import Name
from bothy_wire.ids import HostId, StepUpId

Instant = Annotated[datetime, Meta(tz=True)]


class OwnerBody(msgspec.Struct, frozen=True, kw_only=True):
    """An owner of a host. ``disabled``: the person may do nothing at present."""

    person_id: UUID
    person_name: str
    since: datetime
    disabled: bool


class OwnerList(msgspec.Struct, frozen=True):
    """Owners by name."""

    owners: list[OwnerBody]


class GrantBody(msgspec.Struct, frozen=True, kw_only=True):
    """A person may open terminals on a host as one session user; without ``expires_at`` until somebody takes it away."""

    person_id: UUID
    person_name: str
    session_user: str
    since: datetime
    expires_at: datetime | None


class GrantList(msgspec.Struct, frozen=True):
    """Grants that count at this moment, by person and session user."""

    grants: list[GrantBody]


class OwnerNamed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person by id or exact name. ``step_up_id`` is of the purpose ``manage_host`` and of this host."""

    person: Name
    step_up_id: UUID


class GrantWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For a person by id or exact name. ``step_up_id`` is of the purpose ``manage_host`` and of this host."""

    person: Name
    session_user: Name
    expires_at: Instant | None = None
    step_up_id: UUID


class GrantNamed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to take; all of the person's grants on the host without a ``session_user``.

    ``step_up_id`` is of the purpose ``manage_host`` and of this host.
    """

    person: Name
    session_user: Name | None = None
    step_up_id: UUID


@dataclass(frozen=True, slots=True)
class HostGrants:
    """What owners and operators do about the rights on a host. Names that were tried in vain are counted."""

    grants: Grants
    attempts: Attempts

    @operation("GET", "/api/v1/hosts/{host_id}/owners", refuses={404: ("host_unknown",)})
    async def list_owners(self, call: Call[None]) -> OwnerList:
        """Who owns a host. For its owners and operators."""
        return OwnerList([_owner(each) for each in await self.grants.owners(call.caller, _host_id(call))])

    @operation(
        "POST",
        "/api/v1/hosts/{host_id}/owners",
        refuses={
            401: ("step_up_required",),
            403: ("owner_required",),
            404: ("host_unknown", "person_unknown"),
            409: ("person_without_device",),
            429: ("rate_limited",),
        },
    )
    async def add_owner(self, call: Call[OwnerNamed]) -> OwnerBody:
        """As an owner, make a person an owner too. One who is an owner already changes nothing."""
        step_up_id = StepUpId(call.body.step_up_id)
        async with self._naming(call):
            return _owner(await self.grants.add_owner(call.caller, _host_id(call), call.body.person, step_up_id))

    @operation(
        "POST",
        "/api/v1/hosts/{host_id}/owners/remove",
        refuses={401: ("step_up_required",), 404: ("host_unknown", "owner_unknown"), 409: ("last_owner",)},
    )
    async def remove_owner(self, call: Call[OwnerNamed]) -> Empty:
        """As an owner or operator, take a host from a person. Their sessions end unless a grant carries them."""
        body = call.body
        await self.grants.remove_owner(call.caller, _host_id(call), body.person, StepUpId(body.step_up_id))
        return Empty()

    @operation("GET", "/api/v1/hosts/{host_id}/grants", refuses={404: ("host_unknown",)})
    async def list_grants(self, call: Call[None]) -> GrantList:
        """Who may open terminals on a host without owning it. For its owners and operators."""
        return GrantList([_grant(each) for each in await self.grants.grants(call.caller, _host_id(call))])

    @operation(
        "POST",
        "/api/v1/hosts/{host_id}/grants",
        refuses={
            401: ("step_up_required",),
            403: ("owner_required",),
            404: ("host_unknown", "person_unknown"),
            409: ("person_without_device",),
            422: ("name_invalid", "expiry_past"),
            429: ("rate_limited",),
        },
    )
    async def give_grant(self, call: Call[GrantWanted]) -> GrantBody:
        """As an owner, let a person open terminals as one session user. Once more: with another end, or none."""
        body = call.body
        step_up_id = StepUpId(body.step_up_id)
        async with self._naming(call):
            made = await self.grants.grant(
                call.caller, _host_id(call), body.person, body.session_user, body.expires_at, step_up_id
            )
        return _grant(made)

    @operation(
        "POST",
        "/api/v1/hosts/{host_id}/grants/revoke",
        refuses={401: ("step_up_required",), 404: ("host_unknown", "grant_unknown")},
    )
    async def revoke_grant(self, call: Call[GrantNamed]) -> Empty:
        """As an owner or operator, take a grant away. The sessions that it carried end."""
        body = call.body
        step_up_id = StepUpId(body.step_up_id)
        await self.grants.revoke(call.caller, _host_id(call), body.person, body.session_user, step_up_id)
        return Empty()

    @asynccontextmanager
    async def _naming(self, call: Call[Any]) -> AsyncIterator[None]:
        """Around an act that says of anybody whether they are here: an owner does not try names by the thousand."""
        async with (
            self.attempts.guarding("person", call.caller.person_id, wrong="person_unknown"),
            self.attempts.guarding("person", call.caller.person_id, wrong="person_without_device"),
        ):
            yield


def _host_id(call: Call[Any]) -> HostId:
    return HostId(call.path_id("host_id", host_unknown()))


def _owner(owner: Owner) -> OwnerBody:
    return OwnerBody(
        person_id=owner.person_id, person_name=owner.person_name, since=owner.since, disabled=not owner.usable
    )


def _grant(grant: Grant) -> GrantBody:
    return GrantBody(
        person_id=grant.person_id,
        person_name=grant.person_name,
        session_user=grant.session_user,
        since=grant.since,
        expires_at=grant.expires_at,
    )
