"""The patience of a process that starts while the database is away (``docs/spec/cluster.md``, N1)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from bothy_server.kernel.clock import Clock
from bothy_server.kernel.unit import StorageUnavailable

_FIRST_WAIT_S = 0.25
"""A database that starts beside us is there within seconds; from here the wait doubles up to the cap."""

_log = logging.getLogger(__name__)


async def patiently(act: Callable[[], Awaitable[None]], clock: Clock, backoff_cap: float) -> None:
    """Do ``act``, again and again while it raises ``StorageUnavailable``; every other error is raised at once.

    The log hears of it once, and once more when the database answers. ``backoff_cap`` is the longest wait, in seconds.
    """
    wait, waited = min(_FIRST_WAIT_S, backoff_cap), False
    while True:
        try:
            await act()
        except StorageUnavailable as error:
            if not waited:
                _log.warning("waiting for the database", extra={"reason": str(error)})
            waited = True
            await clock.sleep_until(clock.monotonic() + wait)
            wait = min(2 * wait, backoff_cap)
        else:
            if waited:
                _log.info("the database answers")
            return
