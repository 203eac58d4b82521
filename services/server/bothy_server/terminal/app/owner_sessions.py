"""What an owner of a host does with the sessions on it: list and terminate (``docs/spec/protocol.md``, REST)."""

from __future__ import annotations

from bothy_server.hosts.app.api import host_unknown
from bothy_server.identity.app.api import right_of
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.unit import Unit, UnitOfWork
from bothy_server.terminal.app.open_session import end_sessions, session_unknown
from bothy_server.terminal.app.ports import SessionPage, SessionStore, SessionView
from bothy_wire.ids import HostId, SessionId


class OwnerSessions:
    """Use cases of an owner. To operate the relay gives no right here: only who owns a host decides about its sessions."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow

    async def list(self, caller: Caller, host_id: HostId, page: SessionPage) -> list[SessionView]:
        """Everybody's sessions on a host of the caller, newest first. Raises 404 ``host_unknown``."""
        async with self._uow() as unit:
            if not await _owns(unit, caller, host_id):
                raise host_unknown()
            return await unit.of(SessionStore).views_of_host(host_id, page)

    async def terminate(self, caller: Caller, session_id: SessionId) -> SessionView:
        """End anybody's session on a host of the caller. Doing so twice changes nothing. Raises 404 ``session_unknown``."""
        async with self._uow() as unit:
            row = await unit.of(SessionStore).lock(session_id)
            if row is None or not await _owns(unit, caller, row.host_id):
                raise session_unknown()
            await end_sessions(unit, [session_id], "closed_by_owner", caller=caller)
            view = await unit.of(SessionStore).view(session_id)
            assert view is not None
            return view


async def _owns(unit: Unit, caller: Caller, host_id: HostId) -> bool:
    right = await right_of(unit, caller.person_id, host_id)
    return right is not None and right.owner
