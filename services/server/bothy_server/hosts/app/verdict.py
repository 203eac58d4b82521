"""What follows when two machines hold the key of one host (``docs/spec/cluster.md``, D2)."""

from __future__ import annotations

import logging

from bothy_server.hosts.app.ports import HostEvents, HostStore
from bothy_server.hosts.domain.host import DUPLICATE_CONNECTION
from bothy_server.hosts.domain.signals import HostClose
from bothy_server.kernel.unit import AuditEntry, Event, UnitOfWork
from bothy_wire.close_codes import CloseCode
from bothy_wire.ids import HostId

_log = logging.getLogger(__name__)


class Verdict:
    """Disables a host whose key was copied. Nobody can tell the copy from the original: both leave, until it is paired again."""

    def __init__(self, uow: UnitOfWork, events: HostEvents) -> None:
        """``events`` ends the host's sessions."""
        self._uow = uow
        self._events = events

    async def disable(self, host_id: HostId, pairing_seq: int) -> bool:
        """Whether this call did it: only an active host of this pairing is disabled, and one caller wins."""
        async with self._uow() as unit:
            if not await unit.of(HostStore).disable(host_id, pairing_seq, DUPLICATE_CONNECTION):
                return False
            await self._events.unpaired(unit, host_id, "host_disabled")
            unit.audit(AuditEntry("host.connect", DUPLICATE_CONNECTION, host_id=host_id))
            unit.emit(Event("host.updated", host_id=host_id))
            unit.stage(HostClose(host_id))
        code = int(CloseCode.DUPLICATE_CONNECTION)
        _log.warning("terminal duplicate control connection", extra={"bothy.close.code": code})
        return True
