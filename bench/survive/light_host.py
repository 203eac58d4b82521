"""A host without programs: the real channel over the real sockets; every session prints steadily and answers every key."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any
from uuid import UUID

from ends import ABNORMAL, Patience, carry, pattern
from websockets.exceptions import ConnectionClosed, WebSocketException

from bothy_kit.fake_host import ControlSocket, FakeHost
from bothy_kit.sockets import FakeSide
from bothy_wire.channel import HostEnd, Limits, Resume
from bothy_wire.channel.host_events import Input, Offered, Opened
from bothy_wire.frames import (
    Decoder,
    HostHeartbeat,
    HostIdentified,
    HostReport,
    HostSessionOpen,
    HostSessionStarted,
    ReportedSession,
    ServerControl,
    SidePaired,
    SideReady,
    SideUnpaired,
    encode,
)
from bothy_wire.ids import SessionId
from bothy_wire.limits import LINEAGE_BYTES

_frames = Decoder(SidePaired | SideUnpaired)
_control = Decoder(ServerControl)
_PRINT_S = 1.0
_PRINT_BYTES = 200
_ANSWER_BYTES = 8
_HEARTBEAT_S = 5.0


class LightHost:
    """Whatever it is ordered to open, it opens."""

    def __init__(self, host: FakeHost) -> None:
        self._host = host
        self.sessions: dict[UUID, LightSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.connected = asyncio.Event()

    async def run(self) -> None:
        """Keep the control connection up and the sessions printing, until cancelled."""
        patience = Patience("control")
        try:
            self._printing = self._begin(self._print())
            while True:
                code = await self._connect(patience)
                if not await patience.wait(code):
                    raise ConnectionError(f"the host may not come back: {code}")
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, patience: Patience) -> int:
        try:
            control = await self._host.identify()
            identified = await control.expect(HostIdentified)
            self._host.join = identified.join_offered
            await control.send(self._report())
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else ABNORMAL
        except (OSError, WebSocketException, TimeoutError):
            return ABNORMAL
        patience.settled()
        self.connected.set()
        beating = asyncio.create_task(_beat(control))
        try:
            async for message in control.socket:
                match _control.decode(message):
                    case HostSessionOpen(session_id=session_id):
                        await self._open(SessionId(session_id), control)
        except ConnectionClosed:
            pass  # the code is what counts
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            control.cut()
        return control.socket.close_code or ABNORMAL

    async def _open(self, session_id: SessionId, control: ControlSocket) -> None:
        """A new session, or one more connection of a session that runs."""
        session = self.sessions.get(session_id)
        if session is None:
            session = self.sessions[session_id] = LightSession(self._host, session_id)
            await control.send(HostSessionStarted(session_id=session_id))
        self._begin(session.dial())

    def quiet(self) -> None:
        """Print no more but answers."""
        self._printing.cancel()

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _report(self) -> HostReport:
        running = [
            ReportedSession(session_id=each, phase="running", attached=session.end.open)
            for each, session in self.sessions.items()
        ]
        return self._host.report(*running)

    async def _print(self) -> None:
        while True:
            await asyncio.sleep(_PRINT_S)
            for session in self.sessions.values():
                session.print(_PRINT_BYTES)


class LightSession:
    """One session."""

    def __init__(self, host: FakeHost, session_id: SessionId) -> None:
        self._host = host
        self._id = session_id
        self._current: FakeSide | None = None
        self._newest: asyncio.Task[None] | None = None
        self._resume: Resume = "new"
        self._stirred = asyncio.Event()
        self._ready_due = False
        self.printed = 0
        self.typed = 0
        self.wrong = 0
        """Typed bytes that did not belong where they came."""
        self.ended: int | None = None
        """The close code after which no connection is dialled any more."""
        self.end = HostEnd(channel_key=host.channel_key, session_id=session_id, host_id=host.host_id, limits=Limits())

    def print(self, count: int) -> None:
        """The program prints."""
        self.printed += count
        self._stirred.set()

    async def dial(self) -> None:
        """Keep a connection up until a close code says never, or until there is a newer dial."""
        newest, patience = asyncio.current_task(), Patience("data")
        self._newest = newest
        while self._newest is newest:
            code = await self._connect()
            if self._newest is newest and not await patience.wait(code):
                self.ended = code
                return

    async def _connect(self) -> int:
        try:
            side = await self._host.dial(self._id)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else ABNORMAL
        except (OSError, WebSocketException, TimeoutError):
            return ABNORMAL
        older, self._current, self._ready_due = self._current, side, False
        if older is not None:
            await older.close()
        self.end.unpaired()
        try:
            return await carry(side.socket, partial(self._receive, side), partial(self._outgoing, side), self._stirred)
        finally:
            side.cut()
            if self._current is side:
                self._current = None
                self.end.unpaired()

    def _receive(self, side: FakeSide, message: str | bytes) -> None:
        if self._current is not side:
            return  # what an abandoned connection says is ignored
        now = time.monotonic()
        if isinstance(message, str):
            match _frames.decode(message):
                case SidePaired():
                    self.end.paired(now)
                case SideUnpaired():
                    self.end.unpaired()
                    self._ready_due = True
            return
        for event in self.end.receive(message, now):
            match event:
                case Offered(message1, _):
                    resume = self.end.resume_of(message1, 0)
                    lineage = self.end.lineage if resume != "new" else None
                    position = message1.output_processed if resume == "exact" else self.end.output_position
                    self._resume = resume
                    self.end.accept(resume, lineage or os.urandom(LINEAGE_BYTES), position, now)
                case Opened() if self._resume != "exact":
                    self.end.repaint(b"")
                case Input(data):
                    self.wrong += data != pattern(self.typed, len(data))
                    self.typed += len(data)
                    self.end.written(len(data))
                    self.print(_ANSWER_BYTES * len(data))

    def _outgoing(self, side: FakeSide) -> list[str | bytes]:
        if self._current is not side:
            return []
        due: list[str | bytes] = [encode(SideReady())] if self._ready_due else []
        self._ready_due = False
        sent = self.end.output_position
        if count := min(self.printed - sent, self.end.output_credit):
            self.end.output(pattern(sent, count), time.monotonic())
        return [*due, *self.end.take_outgoing()]


async def _beat(control: ControlSocket) -> None:
    while True:
        await asyncio.sleep(_HEARTBEAT_S)
        await control.send(HostHeartbeat())
