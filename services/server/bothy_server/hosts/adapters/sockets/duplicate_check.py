"""Carries out the rule of duplicates for one control connection (``hosts/domain/duplicates.py``)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from bothy_server.hosts.domain import duplicates as rule
from bothy_server.kernel.clock import Clock, Timer
from bothy_wire.ids import ConnId

_PAYLOAD_BYTES = 16


@dataclass(frozen=True, slots=True)
class Acts:
    """What the rule may have the connection do. ``ping`` returns at the pong with this payload, or raises ``OSError``
    when the socket is not open; the others do not wait.
    """

    announce: Callable[[], None]
    ping: Callable[[bytes], Awaitable[None]]
    serve: Callable[[], None]
    disable: Callable[[], None]
    close: Callable[[], None]


class DuplicateCheck:
    """One machine with its timer and its ping."""

    def __init__(self, acts: Acts, clock: Clock, limits: rule.Limits, tasks: asyncio.TaskGroup) -> None:
        """Nothing happens before a connection is admitted or seen to be behind. ``tasks`` owns the ping."""
        self._acts = acts
        self._clock = clock
        self._limits = limits
        self._tasks = tasks
        self._state = rule.State(None)
        self._timer: Timer | None = None
        self._ping: asyncio.Task[None] | None = None

    @property
    def serving(self) -> bool:
        """Whether the connection may be told to open sessions."""
        return self._state.serving

    @property
    def answered(self) -> bool:
        """Whether the verdict still has to be written."""
        return isinstance(self._state.against, rule.Answered)

    def admitted(self, conn_id: ConnId) -> None:
        """The connection has its name."""
        self._follow((rule.State(conn_id), ()))

    def behind(self) -> None:
        """Its join value was passed already."""
        self._follow(rule.behind(self._clock.monotonic(), self._limits))

    def feed(self, event: rule.Event) -> None:
        """Something happened."""
        self._follow(rule.step(self._state, event, self._clock.monotonic(), self._limits))

    def end(self) -> None:
        """The connection goes."""
        if self._timer is not None:
            self._timer.cancel()
        if self._ping is not None:
            self._ping.cancel()

    def _follow(self, step: rule.Step) -> None:
        self._state, effects = step
        for effect in effects:
            self._perform(effect)
        if self._timer is not None:
            self._timer.cancel()
        due = rule.deadline(self._state)
        self._timer = None if due is None else self._clock.call_at(due, lambda: self.feed(rule.Elapsed()))

    def _perform(self, effect: rule.Effect) -> None:
        match effect:
            case rule.Announce():
                self._acts.announce()
            case rule.Probe():
                if self._ping is not None:
                    self._ping.cancel()  # its pong is no answer to this probe
                self._ping = self._tasks.create_task(self._probe())
            case rule.Serve():
                self._acts.serve()
            case rule.Verdict():
                self._acts.disable()
            case rule.Close():
                self._acts.close()
            case _:
                assert_never(effect)

    async def _probe(self) -> None:
        with suppress(OSError):  # the socket ends; whoever reads it knows
            await self._acts.ping(secrets.token_bytes(_PAYLOAD_BYTES))
            self.feed(rule.Ponged())
