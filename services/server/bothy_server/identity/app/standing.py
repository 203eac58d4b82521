"""What a caller is to a host, asked inside the unit that depends on it."""

from __future__ import annotations

from bothy_server.identity.app.ports import PersonStore, RightStore
from bothy_server.identity.domain.rights import Standing, standing
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import Unit
from bothy_wire.ids import HostId


def host_unknown() -> Problem:
    """One answer for a host that does not exist and one that the caller has nothing to do with."""
    return Problem(404, "host_unknown", "There is no such host, or you have no right on it. `bothy hosts` lists yours.")


def operator_required() -> Problem:
    """For whoever is no operator, or is none any more."""
    return Problem(403, "operator_required", "Only an operator may do this.")


async def check_manages(unit: Unit, caller: Caller | None, host_id: HostId) -> None:
    """Owners and operators manage a host, and the server's own command line (None). Raises 404 ``host_unknown``."""
    if await _standing(unit, caller, host_id) is Standing.NONE:
        raise host_unknown()


async def check_owns(unit: Unit, caller: Caller | None, host_id: HostId) -> None:
    """Owners alone let somebody in. Raises 404 ``host_unknown``, and 403 ``owner_required`` for an operator."""
    match await _standing(unit, caller, host_id):
        case Standing.NONE:
            raise host_unknown()
        case Standing.OPERATOR:
            detail = "Only an owner of the host may do this: to operate the relay gives no right on a terminal."
            raise Problem(403, "owner_required", detail)
        case Standing.OWNER:
            return


async def check_operates(unit: Unit, caller: Caller | None) -> None:
    """Operators, and the server's own command line. Raises 403 ``operator_required``."""
    if caller is not None and not await _operates(unit, caller):
        raise operator_required()


async def _standing(unit: Unit, caller: Caller | None, host_id: HostId) -> Standing:
    if caller is None:
        return Standing.OWNER
    right = await unit.of(RightStore).right(caller.person_id, host_id)
    return standing(right, is_operator=await _operates(unit, caller))


async def _operates(unit: Unit, caller: Caller) -> bool:
    """As it is now; ``caller`` was read when the request began, which may be a while ago."""
    if not caller.is_operator:
        return False
    device = await unit.of(PersonStore).device(caller.device_id)
    return device is not None and device.is_operator
