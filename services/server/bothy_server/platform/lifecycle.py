"""Starting the parts of a process in order, and stopping them in reverse.

A part is an async context manager, or a coroutine that runs until it is cancelled. Every task has its place in the stop
order, and one that ends by itself ends the process: a node without its event tail must not go on serving.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


class ComponentEnded(Exception):  # noqa: N818 - says what happened
    """A task that runs for the process's whole life ended by itself; the cause is its error, if it had one."""


class Lifecycle:
    """The parts of one process::

        async with Lifecycle() as parts:
            await parts.start("database", database_pool(settings))
            parts.own("event_tail", tail.run())
            await tail.settled()
            await parts.until_stopped()

    When an owned task ends by itself the block is interrupted wherever it waits, and leaving it raises
    :class:`ComponentEnded`. Asked to stop before it came to :meth:`until_stopped`, the block is interrupted too, and left
    in silence. A part that fails to start or to stop keeps no other from being stopped.
    """

    def __init__(self) -> None:
        """Needs no loop yet."""
        self._stack = AsyncExitStack()
        self._stop = asyncio.Event()
        self._starting = True
        self._given_up = False
        self._stopping = False
        self._ended: asyncio.Task[None] | None = None
        self._block: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> Self:
        self._block = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._stopping = True
        if self._ended is None:
            return await self._leave(kind, error, trace)
        assert self._block is not None
        self._block.uncancel()
        try:
            await self._stack.aclose()
        finally:
            cause = None if self._ended.cancelled() else self._ended.exception()
            raise ComponentEnded(self._ended.get_name()) from cause

    async def start(self, name: str, part: AbstractAsyncContextManager[T]) -> T:
        """Enter ``part``; it is left when everything started later has been left."""
        started = await self._stack.enter_async_context(part)
        self._stack.callback(_log.debug, "component stops", extra={"component": name})
        _log.debug("component started", extra={"component": name})
        return started

    def own(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` as a task; it is cancelled, and awaited, in its place of the stop order."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._done)
        self._stack.push_async_callback(_end, task)

    def stop(self) -> None:
        """Ask for the end: :meth:`until_stopped` returns, or the start is given up. For a signal handler."""
        self._stop.set()
        waits = self._starting and not self._stopping and asyncio.current_task() is not self._block
        if waits and not self._given_up:
            assert self._block is not None
            self._given_up = self._block.cancel()

    async def until_stopped(self) -> None:
        """Wait for :meth:`stop`. The start is over."""
        self._starting = False
        await self._stop.wait()

    async def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        quiet = False
        if self._given_up:
            assert self._block is not None
            quiet = self._block.uncancel() == 0 and kind is asyncio.CancelledError
        await self._stack.__aexit__(kind, error, trace)
        return quiet

    def _done(self, task: asyncio.Task[None]) -> None:
        if self._stopping or self._ended is not None:
            return
        self._ended = task
        assert self._block is not None
        self._block.cancel()


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("component failed", extra={"component": task.get_name()}, exc_info=error)
