"""The data connection of one session: dialled again whenever it breaks, until the session ends (``cluster.md``, E6).

A ``host.session.open`` for a running session asks for a newer connection, which may land on another node. The older one
stays until the newer is accepted; then it is closed with 1000 and what it still says is ignored.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from websockets.exceptions import ConnectionClosed

from bothy_host import link
from bothy_host.clock import steady
from bothy_host.dial import NO_CODE, Connection, DialError, Outbox, close_code, dialled, leave
from bothy_host.host import Host
from bothy_wire.close_codes import CloseCode, text_of
from bothy_wire.errors import FrameError
from bothy_wire.frames import (
    DataHello,
    DataIdentify,
    Decoder,
    SideAccepted,
    SidePaired,
    SideReady,
    SideUnpaired,
    encode,
)
from bothy_wire.limits import DATA_SUBPROTOCOL
from bothy_wire.signing import Purpose, sign

_log = logging.getLogger(__name__)
_frames = Decoder(DataHello, SideAccepted, SidePaired, SideUnpaired)


class Listener(Protocol):
    """What the connection tells its session; only the current connection speaks."""

    def paired(self) -> None:
        """A device is there."""

    def unpaired(self) -> None:
        """It went, or the connection did. Nothing may be sent until the next pairing."""

    def message(self, data: bytes) -> None:
        """A message of the channel."""

    def stopped(self, code: int) -> None:
        """No connection is dialled any more, for the reason of a close code."""


@dataclass(eq=False)
class _Leg:
    """One connection of the session, from its acceptance on."""

    connection: Connection
    attempt: asyncio.Task[None]
    outbox: Outbox = field(default_factory=Outbox)
    paired: bool = False
    leaving: tuple[int, str] | None = None
    goodbye: asyncio.Event = field(default_factory=asyncio.Event)

    def leave(self, code: int, reason: str) -> None:
        """Close; the first reason counts."""
        self.leaving = self.leaving or (code, reason)
        self.goodbye.set()


class DataLink:
    """Keeps the data connection of one session up while :meth:`run` runs."""

    def __init__(self, host: Host, session_id: UUID, path: str, listener: Listener) -> None:
        self._host = host
        self._session_id = session_id
        self._path = path
        self._listener = listener
        self._state: link.State = link.Idle()
        self._due: asyncio.TimerHandle | None = None
        self._attempts: set[asyncio.Task[None]] = set()
        self._newest: asyncio.Task[None] | None = None
        self._current: _Leg | None = None

    def want(self) -> None:
        """Dial, also when a connection is up."""
        self._feed(link.Wanted())

    def send(self, messages: Iterable[bytes]) -> None:
        """Queue messages of the channel; without a pairing they are dropped."""
        if self._current is not None and self._current.paired:
            for message in messages:
                self._current.outbox.put(message)

    def close(self, code: int, reason: str = "") -> None:
        """Close the current connection; by the code, another one follows."""
        if self._current is not None:
            self._current.leave(code, reason)

    async def stop(self) -> None:
        """Leave for good: close the current connection with 1000 and give up what is under way."""
        self._state = link.Idle()
        self._newest = None
        if self._due is not None:
            self._due.cancel()
        self.close(CloseCode.NORMAL)
        for attempt in self._attempts:
            if self._current is None or attempt is not self._current.attempt:
                attempt.cancel()
        await asyncio.gather(*self._attempts, return_exceptions=True)

    def _feed(self, event: link.Event) -> None:
        self._state, effects = link.step(
            self._state,
            event,
            steady(),
            client="data",
            backoff=self._host.settings.host.backoff(),
            chance=random.random(),  # noqa: S311 - jitter
        )
        for effect in effects:
            match effect:
                case link.Dial():
                    self._newest = asyncio.create_task(self._attempt())
                    self._attempts.add(self._newest)
                    self._newest.add_done_callback(self._attempts.discard)
                case link.Stop(code):
                    self._listener.stopped(code)
        if self._due is not None:
            self._due.cancel()
        due = link.deadline(self._state)
        if due is not None:
            self._due = asyncio.get_running_loop().call_later(max(due - steady(), 0), self._feed, link.Passed())

    async def _attempt(self) -> None:
        code, task = NO_CODE, asyncio.current_task()
        assert task is not None
        try:
            async with dialled(
                self._host.pairing.state.audience, self._path, DATA_SUBPROTOCOL, self._host.manner, self._host.tls
            ) as connection:
                code = await self._lead(connection, task)
        except DialError as error:
            _log.info("data connection of session %s: %s", self._session_id, error)
        if self._newest is task:
            _log.info("data connection of session %s: %s", self._session_id, text_of(code))
            self._feed(link.Lost(code))

    async def _lead(self, connection: Connection, attempt: asyncio.Task[None]) -> int:
        """One connection from its hello to its end; returns the close code."""
        try:
            async with asyncio.timeout(self._host.settings.host.dial_timeout):
                await self._identify(connection)
            leg = _Leg(connection, attempt)
            self._accept(leg)
            return await self._serve(leg)
        except ConnectionClosed as error:
            return close_code(error)
        except TimeoutError:
            return NO_CODE
        except FrameError as error:
            await leave(connection, error.code, str(error))
            return CloseCode.INTERNAL

    async def _identify(self, connection: Connection) -> None:
        state = self._host.pairing.state
        hello = _frames.decode(await connection.recv())
        if not isinstance(hello, DataHello):
            raise FrameError("data.hello expected")
        signature = sign(
            state.signer,
            Purpose.DATA_IDENTIFY,
            state.audience,
            hello.challenge,
            str(state.host_id),
            str(self._session_id),
            str(state.pairing_seq),
        )
        identify = DataIdentify(host_id=state.host_id, session_id=self._session_id, signature=signature)
        await connection.send(encode(identify))
        if not isinstance(_frames.decode(await connection.recv()), SideAccepted):
            raise FrameError("side.accepted expected")

    def _accept(self, leg: _Leg) -> None:
        older, self._current = self._current, leg
        if older is not None:
            self._unpair(older)
            older.leave(CloseCode.NORMAL, "replaced by a newer connection")
        if self._newest is leg.attempt:
            self._feed(link.Accepted())

    async def _serve(self, leg: _Leg) -> int:
        writing = asyncio.create_task(leg.outbox.empty_into(leg.connection))
        leaving = asyncio.create_task(_say_goodbye(leg))
        try:
            while True:
                message = await leg.connection.recv()
                if leg is not self._current or leg.leaving:
                    continue
                if isinstance(message, bytes):
                    self._listener.message(message)
                else:
                    self._frame(leg, message)
        except ConnectionClosed as error:
            return leg.leaving[0] if leg.leaving else close_code(error)
        finally:
            for task in (writing, leaving):
                task.cancel()
            if leg is self._current:
                self._current = None
                self._unpair(leg)

    def _frame(self, leg: _Leg, text: str) -> None:
        match _frames.decode(text):
            case SidePaired() if not leg.paired:
                leg.paired = True
                self._listener.paired()
            case SideUnpaired() if leg.paired:
                leg.outbox.clear()
                self._unpair(leg)
                leg.outbox.put(encode(SideReady()))
            case _:
                raise FrameError("this frame is not expected now")

    def _unpair(self, leg: _Leg) -> None:
        if leg.paired:
            leg.paired = False
            self._listener.unpaired()


async def _say_goodbye(leg: _Leg) -> None:
    await leg.goodbye.wait()
    assert leg.leaving is not None
    await leave(leg.connection, *leg.leaving)
