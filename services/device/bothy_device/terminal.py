"""Runs a session: feeds :class:`~bothy_device.session.Session` from the relay, the terminal and one timer, and obeys it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import assert_never

from bothy_device.clock import steady, watch_sleep
from bothy_device.connector import Connector, Route
from bothy_device.events import (
    Attach,
    Begin,
    Bell,
    Dial,
    Discard,
    Effect,
    Event,
    HangUp,
    Leave,
    Read,
    Resized,
    Say,
    Show,
    Status,
    Suspend,
    Tick,
    Woke,
)
from bothy_device.screen import Screen
from bothy_device.session import Session
from bothy_device.settings import Wire

Build = Callable[[Resized, bool, float], Session]
"""Makes the session from the terminal's size, whether a person types, and the time."""


async def run(route: Route, wire: Wire, build: Build) -> Leave:
    """Until the session leaves. The terminal is as it was before, whatever happens."""
    shell = _Shell()
    async with asyncio.TaskGroup() as group:
        with Screen(shell.feed) as screen:
            session = build(screen.size(), screen.has_keyboard, steady())
            connector = Connector(route, wire, group=group, feed=shell.feed, outgoing=session.take_outgoing)
            shell.start(screen, session, connector)
            connector.dial()
            asleep = group.create_task(watch_sleep(lambda: shell.feed(Woke())))
            leave = await shell.left
            screen.message_follows = leave.message is not None
        await connector.part(leave.close)
        asleep.cancel()
    return leave


class _Shell:
    """One event at a time from one inbox, its effects in order, one timer."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.left: asyncio.Future[Leave] = self._loop.create_future()
        self._inbox: deque[Event] = deque()
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self, screen: Screen, session: Session, connector: Connector) -> None:
        self._screen = screen
        self._session = session
        self._connector = connector
        self._set_timer()

    def feed(self, event: Event) -> None:
        self._inbox.append(event)
        if self._busy:
            return  # an effect brought it about; it is next
        self._busy = True
        try:
            while self._inbox:
                for effect in self._session.handle(self._inbox.popleft(), steady()):
                    self._perform(effect)
        except Exception as error:  # noqa: BLE001 - from a reader or a timer the loop would only log it, into a raw terminal
            if not self.left.done():
                self.left.set_exception(error)
        finally:
            self._busy = False
        self._connector.stir()
        self._set_timer()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Dial():
                self._connector.dial()
            case Attach(take):
                self._connector.attach(take=take)
            case HangUp(code):
                self._connector.hang_up(code)
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
        self._timer = None if due is None else self._loop.call_later(max(0.0, due - steady()), self.feed, Tick())
