"""From a payload to the handlers of its kind. Nothing here waits, so that the listener never does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from bothy_server.cluster.app.inbox import Inbox, InboxLimits
from bothy_server.cluster.app.ports import SignalHandler
from bothy_server.cluster.domain.signal import SignalMalformed, SignalTable
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.unit import Signal

_log = logging.getLogger(__name__)


class Dispatcher:
    """Holds one inbox per handler. ``handlers`` says which handlers want which kind; ``malformed`` only grows."""

    def __init__(
        self,
        table: SignalTable,
        handlers: Mapping[type[Signal], Sequence[SignalHandler]],
        clock: Clock,
        limits: InboxLimits,
    ) -> None:
        self.malformed = 0
        self._table = table
        distinct = {id(handler): handler for wanting in handlers.values() for handler in wanting}
        self._inboxes = {key: Inbox(handler, clock, limits) for key, handler in distinct.items()}
        self._routes = {kind: [self._inboxes[id(each)] for each in wanting] for kind, wanting in handlers.items()}

    @property
    def overflows(self) -> int:
        """Signals that found a full inbox, of all handlers."""
        return sum(inbox.overflows for inbox in self._inboxes.values())

    @property
    def failures(self) -> int:
        """Calls that a handler left with an error, of all handlers."""
        return sum(inbox.failures for inbox in self._inboxes.values())

    def receive(self, payload: str) -> None:
        """Take one payload of the channel: ours, somebody else's (ignored) or malformed (counted, logged)."""
        try:
            signal = self._table.decode(payload)
        except SignalMalformed:
            self.malformed += 1
            _log.warning("terminal signal dropped", extra={"bothy.reason": "malformed"})
            return
        if signal is not None:
            self.deliver([signal])

    def deliver(self, signals: Sequence[Signal]) -> None:
        """Queue signals for the handlers of their kinds."""
        for signal in signals:
            for inbox in self._routes.get(type(signal), ()):
                inbox.put(signal)

    async def reconcile(self) -> None:
        """Tell every handler of a gap; returns when all of them have read the rows after this call."""
        for closed in [inbox.gap() for inbox in self._inboxes.values()]:
            await closed.wait()

    async def run(self) -> None:
        """Feed the handlers until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for inbox in self._inboxes.values():
                tasks.create_task(inbox.run())
