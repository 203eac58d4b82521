"""The node's ear: one connection that listens, watched and replaced by the rules of ``domain/listener.py``."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from typing import Any, assert_never

import psycopg

from bothy_server.cluster.adapters.postgres.connection import ListeningConnection
from bothy_server.cluster.adapters.postgres.signals import CHANNEL, Notify, error_type
from bothy_server.cluster.app.dispatcher import Dispatcher
from bothy_server.cluster.domain import listener as rules
from bothy_server.kernel.clock import Clock, Timer
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.database import Database

_log = logging.getLogger(__name__)


class ListenUrlDeaf(Exception):  # noqa: N818 - says what is wrong
    """The database answers, but nothing is heard by way of ``database.listen_url``. The message says what to do."""


class EphemeralListener:
    """Hears the channel for the dispatcher. Loses no socket and no readiness over a lost connection.

    ``notify`` commits a self-notify through the pool, so that an echo proves the whole way from a writer to this ear.
    ``on_hearing`` is told ``False`` at a loss and ``True`` when nothing is missed any more.
    """

    name = "terminal_ephemeral"

    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        notify: Notify,
        clock: Clock,
        limits: rules.Limits,
        on_hearing: Callable[[bool], None],
    ) -> None:
        self.started = asyncio.Event()
        """Set once it hears, or once the database is known to be away, which is no reason not to start."""
        self._database = database
        self._dispatcher = dispatcher
        self._notify = notify
        self._clock = clock
        self._limits = limits
        self._on_hearing = on_hearing
        self._last_echo: float | None = None
        self._self_notify: str | None = None
        self._alarm = asyncio.Event()
        self._timer: Timer | None = None
        self._tasks: asyncio.TaskGroup
        self._state: rules.State
        self._running: set[asyncio.Task[None]] = set()
        """What belongs to the present connection and ends with it: its reader, its reconcile."""

    @property
    def echo_age_s(self) -> float | None:
        """Seconds since the last echo; ``None`` before the first."""
        return None if self._last_echo is None else self._clock.monotonic() - self._last_echo

    async def run(self) -> None:
        """Listen until cancelled. Raises :class:`ListenUrlDeaf` at the start; anything else it raises is a bug."""
        async with asyncio.TaskGroup() as self._tasks:
            try:
                self._follow(rules.start(self._clock.monotonic(), self._limits))
                while not isinstance(self._state, rules.Refused):
                    await self._alarm.wait()
                    self._alarm.clear()
                    self._feed(rules.Elapsed())
            finally:
                self._disconnect()
                self._disarm()
        raise ListenUrlDeaf(
            f"database.url answers, but no notification arrives through database.listen_url ({self._state.error_type}). "
            "It must be a direct address of the same database: not a transaction pooler, not a replica."
        )

    def _feed(self, event: rules.Event) -> None:
        self._follow(rules.step(self._state, event, self._clock.monotonic(), self._limits))

    def _follow(self, step: rules.Step) -> None:
        self._state, effects = step
        for effect in effects:
            self._perform(effect)
        self._arm()

    def _perform(self, effect: rules.Effect) -> None:
        match effect:
            case rules.Connect():
                self._spawn(self._listen())
            case rules.Disconnect():
                self._disconnect()
            case rules.NotifySelf():
                self._tasks.create_task(self._notify_self())
            case rules.Reconcile():
                self._spawn(self._reconcile())
            case rules.TellLost(error_type):
                _log.warning("terminal ephemeral listener lost", extra={"error.type": error_type})
                self._on_hearing(False)
                self.started.set()
            case rules.TellHearing(restored):
                if restored:
                    _log.info("terminal ephemeral listener restored")
                    self._on_hearing(True)
                self.started.set()
            case rules.Refuse():
                self._alarm.set()
            case _:
                assert_never(effect)

    async def _listen(self) -> None:
        try:
            async with await ListeningConnection.open(self._database) as connection:
                await connection.listen(CHANNEL)
                self._feed(rules.Listened())
                while True:
                    for payload in await connection.payloads():
                        self._hear(payload)
        except (StorageUnavailable, psycopg.Error) as error:
            self._feed(rules.Broke(error_type(error)))

    def _hear(self, payload: str) -> None:
        if payload == self._self_notify:
            self._last_echo = self._clock.monotonic()
            self._feed(rules.Echoed())
        else:
            self._dispatcher.receive(payload)

    async def _notify_self(self) -> None:
        """Not cut short when the connection goes: the pool would have to cancel a statement. Then nobody asks any more."""
        payload = json.dumps({"kind": "cluster.echo", "echo_id": str(new_id(self._clock.now()))})
        self._self_notify = payload
        outcome: rules.Event = rules.Committed()
        try:
            await self._notify([payload])
        except StorageUnavailable as error:
            outcome = rules.Failed(error_type(error))
        if self._self_notify == payload:
            self._feed(outcome)

    async def _reconcile(self) -> None:
        await self._dispatcher.reconcile()
        self._feed(rules.Reconciled())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _disconnect(self) -> None:
        self._self_notify = None
        for task in self._running:
            task.cancel()
        self._running.clear()

    def _arm(self) -> None:
        self._disarm()
        due = rules.deadline(self._state)
        if due is not None:
            self._timer = self._clock.call_at(due, self._alarm.set)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
