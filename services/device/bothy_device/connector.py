"""The way to the relay: one attempt or one connection at a time, and what an abandoned one still says is not heard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from bothy_device.events import Accepted, Attached, Closed, Event, Received, Refused, Unreached
from bothy_device.failure import Failure, Unreachable
from bothy_device.settings import Wire
from bothy_device.stream import CLOSE_TIMEOUT, Stream, StreamClosedError
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import Frame


class Route(Protocol):
    """Where to dial and to attach; it holds the stream token."""

    def dial(self) -> AbstractAsyncContextManager[Stream]:
        """An identified connection. Raises :class:`StreamClosedError` and :class:`Unreachable`."""
        ...

    async def attach(self, *, take: bool) -> float:
        """Get a new stream token, returns until when it lives. Raises :class:`Failure`, with code ``replaced`` when
        another device holds the session and ``take`` is false.
        """
        ...


class Connector:
    """Dials and attaches when it is told to. Its tasks are ``group``'s."""

    def __init__(
        self,
        route: Route,
        wire: Wire,
        *,
        group: asyncio.TaskGroup,
        feed: Callable[[Event], None],
        outgoing: Callable[[], list[Frame | bytes]],
    ) -> None:
        """``feed`` gets what happens, ``outgoing`` gives what there is to send now."""
        self._route = route
        self._wire = wire
        self._group = group
        self._feed = feed
        self._outgoing = outgoing
        self._task: asyncio.Task[None] | None = None
        self._talk: Talk | None = None

    def dial(self) -> None:
        """Drop what there is and dial."""
        self._replace(self._dial)

    def attach(self, *, take: bool) -> None:
        """Drop what there is and ask for a new stream token."""
        self._replace(lambda: self._attach(take=take))

    def stir(self) -> None:
        """There may be something to send."""
        if self._talk is not None:
            self._talk.stir()

    def hang_up(self, code: int) -> None:
        """Close the connection with this code, as far as the relay lets us, and hear no more of it."""
        if self._talk is not None:
            self._talk.hang_up(code)

    async def part(self, code: int) -> None:
        """Send what is left, then the close code; a relay that takes nothing gets a moment only."""
        if self._talk is not None and self._task is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await self._talk.sent.wait()
                    self._talk.hang_up(code)
                    await asyncio.wait([self._task])
        self._drop()

    def _replace(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        before = self._drop()

        async def follow() -> None:
            if before is not None:
                await asyncio.wait([before])
            await work()

        self._task = self._group.create_task(follow())

    def _drop(self) -> asyncio.Task[None] | None:
        """The socket is gone when this returns, whatever its task still does."""
        before, self._task = self._task, None
        if self._talk is not None:
            self._talk.abort()
            self._talk = None
        if before is not None:
            before.cancel()
        return before

    async def _dial(self) -> None:
        event: Event | None
        try:
            async with self._route.dial() as stream:
                self._talk = Talk(stream, self._feed, self._outgoing)
                self._feed(Accepted())
                event = await self._talk.run(self._wire)
        except StreamClosedError as closed:
            event = Closed(closed.code, closed.reason)
        except Unreachable as failure:
            event = Unreached(failure.local, failure.message)
        self._talk = None
        if event is not None:
            self._feed(event)

    async def _attach(self, *, take: bool) -> None:
        try:
            self._feed(Attached(await self._route.attach(take=take)))
        except Unreachable as failure:
            self._feed(Unreached(failure.local, failure.message))
        except Failure as failure:
            self._feed(Refused(failure.code or "", failure.message, failure.retry_after))


class Talk:
    """One identified connection until it is gone."""

    def __init__(
        self, stream: Stream, feed: Callable[[Event], None], outgoing: Callable[[], list[Frame | bytes]]
    ) -> None:
        self._stream = stream
        self._feed = feed
        self._outgoing = outgoing
        self._stirred = asyncio.Event()
        self._farewell: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.sent = asyncio.Event()
        """Everything there was to send is with the socket."""

    def stir(self) -> None:
        """There may be something to send."""
        self.sent.clear()
        self._stirred.set()

    def hang_up(self, code: int) -> None:
        """Say good-bye and end; the relay is not heard any more."""
        if not self._farewell.done():
            self._farewell.set_result(code)

    def abort(self) -> None:
        """Drop the connection without a word."""
        self._stream.abort()

    async def run(self, wire: Wire) -> Closed | None:
        """How it ended; ``None`` when we hung up."""
        receiving, sending, watching = tasks = [
            asyncio.ensure_future(each) for each in (self._receive(), self.send(), self._watch(wire))
        ]
        try:
            ends: list[asyncio.Future[Any]] = [*tasks, self._farewell]
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        ended = [task.result() for task in (receiving, watching, sending) if task in done]
        if not self._farewell.done():
            return ended[0]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._stream.close(self._farewell.result())
        return None

    async def _receive(self) -> Closed:
        try:
            while True:
                self._feed(Received(await self._stream.receive()))
        except StreamClosedError as closed:
            return Closed(closed.code, closed.reason)

    async def _watch(self, wire: Wire) -> Closed:
        await self._stream.watch(wire.ping_interval, wire.ping_timeout)
        return Closed(CloseCode.SILENT, "")

    async def send(self) -> Closed:
        """Until the connection is gone; `_receive` says how."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            with contextlib.suppress(StreamClosedError):
                # While the socket takes nothing, nothing is taken from the session: there it has a bound.
                while items := self._outgoing():
                    for item in items:
                        await self._stream.send(item)
            self.sent.set()
