"""Reads of session rows, batched: one statement for everything asked for within a loop tick."""

from __future__ import annotations

import asyncio

from bothy_server.kernel.unit import UnitOfWork
from bothy_server.terminal.app.ports import SessionRecord, SessionStore
from bothy_wire.ids import SessionId


class RowReader:
    """A burst of signals or sides costs one read, not one each (``docs/spec/cluster.md``, S6)."""

    def __init__(self, uow: UnitOfWork, tasks: asyncio.TaskGroup) -> None:
        """``tasks`` owns the reads."""
        self._uow = uow
        self._tasks = tasks
        self._waiting: dict[SessionId, asyncio.Future[SessionRecord | None]] = {}

    async def read(self, session_id: SessionId) -> SessionRecord | None:
        """The row as it is after this call began, or None. Raises ``StorageUnavailable``."""
        future = self._waiting.get(session_id)
        if future is None:
            if not self._waiting:
                self._tasks.create_task(self._flush())
            future = self._waiting[session_id] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(future)

    async def _flush(self) -> None:
        await asyncio.sleep(0)  # let the rest of this loop tick join
        waiting, self._waiting = self._waiting, {}
        try:
            async with self._uow() as unit:
                rows = await unit.of(SessionStore).rows(waiting)
        except Exception as error:  # noqa: BLE001 - the readers raise it
            for future in waiting.values():
                future.set_exception(error)
                future.exception()  # a reader that gave up must not make the loop complain
        else:
            for session_id, future in waiting.items():
                future.set_result(rows.get(session_id))
