"""What other features may call of identity.

A function that takes part in another feature's transaction takes the ``Unit`` as its first argument.
"""

from __future__ import annotations

from bothy_server.identity.app.attempts import Attempts
from bothy_server.identity.app.holding import hold_caller
from bothy_server.identity.app.ports import (
    ChallengeStore,
    Device,
    PersonStore,
    RightEvents,
    RightStore,
    TokenExpired,
    TokenInvalid,
    Tokens,
)
from bothy_server.identity.app.repeats import Made, made_before, remember_made
from bothy_server.identity.app.standing import check_manages, check_operates, check_owns, host_unknown
from bothy_server.identity.domain.act import Act
from bothy_server.identity.domain.rights import Right
from bothy_server.identity.domain.tokens import AccessToken, SessionToken, StreamToken
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import Unit, UnitOfWork
from bothy_wire.ids import DeviceId, HostId, PersonId, StepUpId

__all__ = [
    "AccessToken",
    "Act",
    "Attempts",
    "Callers",
    "Device",
    "Made",
    "Right",
    "RightEvents",
    "SessionToken",
    "StreamToken",
    "TokenExpired",
    "TokenInvalid",
    "Tokens",
    "add_owner",
    "check_manages",
    "check_operates",
    "check_owns",
    "find_device",
    "find_person",
    "hold_caller",
    "host_unknown",
    "made_before",
    "remember_made",
    "right_of",
    "rights_of",
    "sign_in_required",
    "spend_step_up",
]


class Callers:
    """Turns an access token into a caller."""

    def __init__(self, uow: UnitOfWork, tokens: Tokens) -> None:
        """``tokens`` reads what :class:`~bothy_server.identity.app.login.Login` minted."""
        self._uow = uow
        self._tokens = tokens

    async def caller(self, access_token: str | None) -> Caller:
        """Raises 401 ``token_invalid`` also when the device was revoked after the token was made.

        A browser whose login is over gets 401 ``sign_in_required``, whatever its token says.
        """
        refusal = Problem(
            401, "token_invalid", "Sign in again: the access token is missing, expired or not valid here."
        )
        if access_token is None:
            raise refusal
        try:
            token = self._tokens.read(AccessToken, access_token)
        except TokenInvalid as error:
            raise refusal from error
        async with self._uow() as unit:
            device = await find_device(unit, token.device_id)
        if device is None or not device.usable:
            raise refusal
        if device.login_over:
            raise sign_in_required()
        return Caller(device.person_id, device.id, device.is_operator, device.kind)


def sign_in_required() -> Problem:
    """Its key alone signs a browser in only so long."""
    return Problem(401, "sign_in_required", "The login of this browser is over. Sign in with a passkey.")


async def find_device(unit: Unit, device_id: DeviceId) -> Device | None:
    """A device and whether it may act now."""
    return await unit.of(PersonStore).device(device_id)


async def find_person(unit: Unit, person: str) -> PersonId:
    """An enabled person by id or exact name. One who is disabled and one who is not there are one answer.

    Raises 404 ``person_unknown``.
    """
    person_id = await unit.of(PersonStore).find_person(person)
    if person_id is None:
        raise Problem(404, "person_unknown", "There is no such person. Give the exact name, or the id.")
    return person_id


async def right_of(unit: Unit, person_id: PersonId, host_id: HostId) -> Right | None:
    """The person's right ``terminal`` on a host, at this moment."""
    return await unit.of(RightStore).right(person_id, host_id)


async def rights_of(unit: Unit, person_id: PersonId) -> dict[HostId, Right]:
    """All rights of a person."""
    return await unit.of(RightStore).rights(person_id)


async def add_owner(unit: Unit, person_id: PersonId, host_id: HostId) -> None:
    """Make a person an owner of a host."""
    await unit.of(RightStore).add_owner(person_id, host_id)


async def spend_step_up(unit: Unit, caller: Caller | None, step_up_id: StepUpId | None, act: Act) -> None:
    """Spend a fresh step-up for exactly this act, or raise 401 ``step_up_required``.

    It rolls back with the unit, so a refused act spends nothing: call it when everything else has been checked. The server's
    own command line, which is no ``caller``, confirms nothing.
    """
    if caller is None:
        return
    store = unit.of(ChallengeStore)
    if step_up_id is None or not await store.consume_step_up(step_up_id, caller.person_id, caller.device_id, act):
        raise Problem(
            401,
            "step_up_required",
            "Confirm again on this device: the confirmation is missing, used, too old or for another act.",
        )
