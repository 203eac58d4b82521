"""What an operator sees of everybody's sessions: facts, and no right on any of them (``docs/spec/protocol.md``, REST)."""

from __future__ import annotations

from bothy_server.kernel.caller import Caller
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import UnitOfWork
from bothy_server.terminal.app.ports import SessionPage, SessionStore, SessionView


class OperatorSessions:
    """Reads only."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow

    async def list(self, caller: Caller, page: SessionPage) -> list[SessionView]:
        """Everybody's sessions, newest first. Raises 403 ``operator_required``."""
        if not caller.is_operator:
            raise Problem(403, "operator_required", "Only an operator sees everybody's sessions.")
        async with self._uow() as unit:
            return await unit.of(SessionStore).views_of_all(page)
