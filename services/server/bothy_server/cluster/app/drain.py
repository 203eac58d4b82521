"""The shell of a node's drain: waits until it is asked, then obeys the rule of ``domain/drain``, which bears its name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Protocol, assert_never

from bothy_server.cluster.domain import drain as rule
from bothy_server.kernel.clock import Clock

_log = logging.getLogger(__name__)


class Leaving(Protocol):
    """What a drain does to its node; bound in the wiring. No call waits."""

    def turn_away(self) -> None:
        """``/readyz`` says no, the table of nodes says ``draining``, and no session is acted for any more."""

    def close_listener(self) -> None:
        """Refuse new connections."""

    def close_controls(self, count: int) -> None:
        """Close so many control connections that are not closed yet."""

    def close_sides(self, pairs: int) -> None:
        """Close all sides that are alone, and both sides of so many pairs that are not closed yet."""

    def exit(self) -> None:
        """End the process."""

    def left(self) -> rule.Left:
        """What is still here, also what is on its way out."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a drain is, and what is left."""

    step: rule.Step
    left: rule.Left


class Drain:
    """One node's; :meth:`run` is its task. It begins once and is not taken back."""

    def __init__(self, leaving: Leaving, clock: Clock, limits: rule.Limits) -> None:
        """Nothing happens before :meth:`begin`."""
        self._leaving = leaving
        self._clock = clock
        self._limits = limits
        self._asked = asyncio.Event()
        self._looked = asyncio.Event()
        self._progress: Progress | None = None
        self._ended = False

    def begin(self) -> None:
        """Leave from now on. Asking again changes nothing."""
        self._asked.set()

    @property
    def begun(self) -> bool:
        """Whether it was asked for."""
        return self._asked.is_set()

    async def run(self) -> None:
        """Until cancelled; when the node is drained, or its time is over, the process is asked to end."""
        await self._asked.wait()
        try:
            await self._obey()
        finally:
            self._ended = True
            self._looked.set()
        await asyncio.Event().wait()

    async def watch(self) -> AsyncIterator[Progress]:
        """Each change, from now until it is over or cut short."""
        told = None
        while True:
            if self._progress is not None and self._progress != told:
                told = self._progress
                yield told
            if self._ended:
                return
            await self._looked.wait()

    async def _obey(self) -> None:
        state, acts = rule.begin(self._clock.monotonic())
        while True:
            for act in acts:
                self._do(act)
            self._look(state.step)
            at = rule.deadline(state, self._limits)
            if at is None:
                return
            await self._clock.sleep_until(at)
            state, acts = rule.step(state, self._leaving.left(), self._clock.monotonic(), self._limits)

    def _do(self, act: rule.Act) -> None:
        match act:
            case rule.TurnAway():
                self._leaving.turn_away()
            case rule.CloseListener():
                self._leaving.close_listener()
            case rule.CloseControls(count):
                self._leaving.close_controls(count)
            case rule.CloseSides(pairs):
                self._leaving.close_sides(pairs)
            case rule.Exit():
                self._leaving.exit()
            case _:
                assert_never(act)

    def _look(self, step: rule.Step) -> None:
        progress = Progress(step, self._leaving.left())
        if progress != self._progress:
            _log.info("draining", extra={"step": step.value, **asdict(progress.left)})
        self._progress = progress
        looked, self._looked = self._looked, asyncio.Event()
        looked.set()
