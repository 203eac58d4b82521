"""Runs a session: feeds :class:`~bothy_device.session.Session` from the socket, the terminal and one timer, and obeys it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import assert_never

from bothy_device.events import (
    Begin,
    Bell,
    Closed,
    Discard,
    Effect,
    Event,
    Leave,
    Read,
    Received,
    Resized,
    Say,
    Show,
    Status,
    Suspend,
    Tick,
)
from bothy_device.screen import Screen
from bothy_device.session import Session
from bothy_device.settings import Wire
from bothy_device.stream import CLOSE_TIMEOUT, Stream, StreamClosedError
from bothy_wire.close_codes import CloseCode

Build = Callable[[Resized, bool, float], Session]
"""Makes the session from the terminal's size, whether a person types, and the time."""


async def run(stream: Stream, wire: Wire, build: Build) -> Leave:
    """Until the session leaves. The terminal is as it was before, whatever happens."""
    loop = asyncio.get_running_loop()
    shell = _Shell(stream)
    async with asyncio.TaskGroup() as group:
        with Screen(shell.feed) as screen:
            shell.start(screen, build(screen.size(), screen.has_keyboard, loop.time()))
            tasks = [group.create_task(each) for each in (shell.receive(), shell.send(), shell.watch(wire))]
            leave = await shell.left
            screen.message_follows = leave.message is not None
        await shell.part(leave.close)
        for task in tasks:
            task.cancel()
    return leave


class _Shell:
    """One event at a time from one inbox, its effects in order, one timer."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self.left: asyncio.Future[Leave] = self._loop.create_future()
        self._inbox: deque[Event] = deque()
        self._stirred = asyncio.Event()
        """The session may have something to send."""
        self._sent = asyncio.Event()
        """Everything that it had is with the socket."""
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self, screen: Screen, session: Session) -> None:
        self._screen = screen
        self._session = session
        self._set_timer()

    def feed(self, event: Event) -> None:
        self._inbox.append(event)
        if self._busy:
            return  # an effect brought it about; it is next
        self._busy = True
        try:
            while self._inbox:
                for effect in self._session.handle(self._inbox.popleft(), self._loop.time()):
                    self._perform(effect)
        except Exception as error:  # noqa: BLE001 - from a reader or a timer the loop would only log it, into a raw terminal
            if not self.left.done():
                self.left.set_exception(error)
        finally:
            self._busy = False
        self._sent.clear()
        self._stirred.set()
        self._set_timer()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Show(data):
                self._screen.write(data)
            case Discard():
                self._screen.discard()
            case Begin():
                self._screen.begin()
            case Say(text):
                self._screen.say(text)
            case Status(text):
                self._screen.status(text)
            case Bell():
                self._screen.bell()
            case Read(on):
                self._screen.read(on=on)
            case Suspend():
                self._screen.suspend()
            case Leave():
                self.left.set_result(effect)
            case _:
                assert_never(effect)

    def _set_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
        due = None if self.left.done() else self._session.deadline()
        self._timer = None if due is None else self._loop.call_at(due, self.feed, Tick())

    async def receive(self) -> None:
        try:
            while True:
                self.feed(Received(await self._stream.receive()))
        except StreamClosedError as closed:
            self.feed(Closed(closed.code, closed.reason))

    async def send(self) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            with contextlib.suppress(StreamClosedError):  # `receive` tells
                # While the socket takes nothing, nothing is taken from the session: there it has a bound.
                while items := self._session.take_outgoing():
                    for item in items:
                        await self._stream.send(item)
            self._sent.set()

    async def watch(self, wire: Wire) -> None:
        await self._stream.watch(wire.ping_interval, wire.ping_timeout)
        self.feed(Closed(CloseCode.SILENT, ""))

    async def part(self, code: int) -> None:
        """Send what is left, then the close code; a socket that takes nothing gets a moment only."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._sent.wait()
                await self._stream.close(code)
        except TimeoutError:
            return  # the caller drops the connection
