"""The data connection of one session: dialled again whenever it breaks, until the session ends (``cluster.md``, E6).

A ``host.session.open`` for a running session asks for a newer connection, which may land on another node. The older one
stays until the newer is accepted; then it is closed with 1000 and what it still says is ignored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from websockets.exceptions import ConnectionClosed

from bothy_host import redial
from bothy_host.clock import steady
from bothy_host.dial import NO_CODE, DialError, Socket, close_code, dialled, leave
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
    """What the connection tells and asks its session; only the current connection speaks."""

    def paired(self) -> None:
        """A device is there."""

    def unpaired(self) -> None:
        """It went, or the connection did. Nothing may be sent until the next pairing."""

    def message(self, data: bytes) -> None:
        """A message of the channel."""

    def take_outgoing(self) -> list[bytes]:
        """Messages of the channel to send now; asked again when the connection took them."""

    def stopped(self, code: int) -> None:
        """No connection is dialled any more, for the reason of a close code."""


@dataclass(eq=False)
class _Connection:
    """One data connection, from its acceptance on."""

    socket: Socket
    attempt: asyncio.Task[None]
    paired: bool = False
    ready_due: bool = False
    messages: deque[bytes] = field(default_factory=deque)
    """Taken from the session and not sent yet; no more are taken before these are out."""
    stirred: asyncio.Event = field(default_factory=asyncio.Event)
    leaving: tuple[int, str] | None = None
    goodbye: asyncio.Event = field(default_factory=asyncio.Event)

    def leave(self, code: int, reason: str) -> None:
        """Close; the first reason counts."""
        self.leaving = self.leaving or (code, reason)
        self.goodbye.set()


class DataDialler:
    """Keeps the data connection of one session up, from the first :meth:`want` until :meth:`stop`."""

    def __init__(self, host: Host, session_id: UUID, path: str, listener: Listener) -> None:
        self._host = host
        self._session_id = session_id
        self._path = path
        self._listener = listener
        self._state: redial.State = redial.Idle()
        self._due: asyncio.TimerHandle | None = None
        self._attempts: set[asyncio.Task[None]] = set()
        self._newest: asyncio.Task[None] | None = None
        self._current: _Connection | None = None

    @property
    def up(self) -> bool:
        """Whether a connection is accepted and not gone."""
        return self._current is not None

    def want(self) -> None:
        """Dial, also when a connection is up."""
        self._feed(redial.Wanted())

    def woke(self) -> None:
        """This machine slept: what was up is most likely dead, and who waits for a dial waits no longer."""
        self._feed(redial.Woke())
        if self._current is not None:
            self._current.socket.transport.abort()

    def stir(self) -> None:
        """There may be messages to take; without a pairing nobody takes them."""
        if self._current is not None:
            self._current.stirred.set()

    def close(self, code: int, reason: str = "") -> None:
        """Close the current connection; by the code, another one follows."""
        if self._current is not None:
            self._current.leave(code, reason)

    async def stop(self) -> None:
        """Leave for good: close the current connection with 1000 and give up what is under way."""
        self._state = redial.Idle()
        self._newest = None
        if self._due is not None:
            self._due.cancel()
        self.close(CloseCode.NORMAL)
        for attempt in self._attempts:
            if self._current is None or attempt is not self._current.attempt:
                attempt.cancel()
        await asyncio.gather(*self._attempts, return_exceptions=True)

    def _feed(self, event: redial.Event) -> None:
        self._state, effects = redial.step(
            self._state,
            event,
            steady(),
            client="data",
            backoff=self._host.settings.host.backoff(),
            chance=random.random(),  # noqa: S311 - jitter
        )
        for effect in effects:
            match effect:
                case redial.Dial():
                    self._newest = asyncio.create_task(self._attempt())
                    self._attempts.add(self._newest)
                    self._newest.add_done_callback(self._done)
                case redial.Stop(code):
                    self._listener.stopped(code)
        if self._due is not None:
            self._due.cancel()
        due = redial.deadline(self._state)
        if due is not None:
            self._due = asyncio.get_running_loop().call_later(max(due - steady(), 0), self._feed, redial.Passed())

    async def _attempt(self) -> None:
        code, task = NO_CODE, asyncio.current_task()
        assert task is not None
        try:
            async with dialled(
                self._host.pairing.state.audience, self._path, DATA_SUBPROTOCOL, self._host.manner, self._host.tls
            ) as socket:
                code = await self._lead(socket, task)
        except DialError as error:
            _log.info("data connection of session %s: %s", self._session_id, error)
        finally:
            # Also behind a defect: a session that nobody dials for any more would look alive and be out of reach.
            if self._newest is task:
                _log.info("data connection of session %s: %s", self._session_id, text_of(code))
                self._feed(redial.Lost(code))

    def _done(self, attempt: asyncio.Task[None]) -> None:
        self._attempts.discard(attempt)
        if not attempt.cancelled() and (error := attempt.exception()) is not None:
            _log.error("data connection of session %s failed", self._session_id, exc_info=error)

    async def _lead(self, socket: Socket, attempt: asyncio.Task[None]) -> int:
        """One connection from its hello to its end; returns the close code."""
        try:
            async with asyncio.timeout(self._host.settings.host.dial_timeout):
                await self._identify(socket)
        except ConnectionClosed as error:
            return close_code(error)
        except TimeoutError:
            return NO_CODE
        except FrameError as error:
            await leave(socket, error.code, str(error))
            return CloseCode.INTERNAL
        connection = _Connection(socket, attempt)
        self._accept(connection)
        return await self._serve(connection)

    async def _identify(self, socket: Socket) -> None:
        state = self._host.pairing.state
        hello = _frames.decode(await socket.recv())
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
        await socket.send(encode(identify))
        if not isinstance(_frames.decode(await socket.recv()), SideAccepted):
            raise FrameError("side.accepted expected")

    def _accept(self, connection: _Connection) -> None:
        older, self._current = self._current, connection
        if older is not None:
            self._unpair(older)
            older.leave(CloseCode.NORMAL, "replaced by a newer connection")
        if self._newest is connection.attempt:
            self._feed(redial.Accepted())

    async def _serve(self, connection: _Connection) -> int:
        """Read, write and leave side by side; returns the close code. A defect of one ends all three."""
        try:
            async with asyncio.TaskGroup() as group:
                others = [group.create_task(each) for each in (self._write(connection), _say_goodbye(connection))]
                code = await self._read(connection)
                for task in others:
                    task.cancel()
        finally:
            if connection is self._current:
                self._current = None
                self._unpair(connection)
        return code

    async def _read(self, connection: _Connection) -> int:
        try:
            while True:
                message = await connection.socket.recv()
                if connection is not self._current or connection.leaving:
                    continue
                if isinstance(message, bytes):
                    self._listener.message(message)
                else:
                    self._frame(connection, message)
        except ConnectionClosed as error:
            return connection.leaving[0] if connection.leaving else close_code(error)
        except FrameError as error:
            await leave(connection.socket, error.code, str(error))
            return CloseCode.INTERNAL

    async def _write(self, connection: _Connection) -> None:
        with contextlib.suppress(ConnectionClosed):  # the reader hears of it too
            while True:
                await connection.stirred.wait()
                connection.stirred.clear()
                while (message := self._next(connection)) is not None:
                    # Waits while the socket takes nothing; meanwhile nothing is taken from the session.
                    await connection.socket.send(message)

    def _next(self, connection: _Connection) -> str | bytes | None:
        if connection.ready_due:
            connection.ready_due = False
            return encode(SideReady())
        if not connection.messages and connection.paired and not connection.leaving:
            connection.messages.extend(self._listener.take_outgoing())
        return connection.messages.popleft() if connection.messages else None

    def _frame(self, connection: _Connection, text: str) -> None:
        match _frames.decode(text):
            case SidePaired() if not connection.paired:
                connection.paired = True
                self._listener.paired()
            case SideUnpaired() if connection.paired:
                self._unpair(connection)
                connection.ready_due = True
                connection.stirred.set()
            case _:
                raise FrameError("this frame is not expected now")

    def _unpair(self, connection: _Connection) -> None:
        if connection.paired:
            connection.paired = False
            connection.messages.clear()
            self._listener.unpaired()


async def _say_goodbye(connection: _Connection) -> None:
    await connection.goodbye.wait()
    assert connection.leaving is not None
    await leave(connection.socket, *connection.leaving)
