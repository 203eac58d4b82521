"""An act and the revocation of whoever does it never miss each other: one waits for the other, and then knows."""

from __future__ import annotations

from typing import Protocol

from bothy_server.kernel.caller import Caller
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import Unit
from bothy_wire.ids import DeviceId


class HoldStore(Protocol):
    """Who may act, kept so."""

    async def hold(self, device_id: DeviceId) -> bool:
        """Whether the device may act; until the unit ends nobody revokes it or disables its person."""


async def hold_caller(unit: Unit, caller: Caller | None) -> None:
    """Ask again what the access token was asked for, in the unit that makes something a revocation must find.

    Call it before anything else is locked. None is the server's own command line. Raises 401 ``token_invalid``.
    """
    if caller is not None and not await unit.of(HoldStore).hold(caller.device_id):
        raise Problem(401, "token_invalid", "This device was revoked, or its person disabled.")
