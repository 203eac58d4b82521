"""One control connection from its hello to its end; a ``ControlLink`` once the host is admitted.

Three tasks. The reader answers heartbeats by itself, so that a database that is slow or away never makes a host believe
its connection dead. Whatever needs the database is done by the worker, in its order. The writer alone writes. A fourth
waits for the answer to a probe, while there is one.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from enum import Enum, auto
from typing import assert_never

from starlette.websockets import WebSocket, WebSocketDisconnect

from bothy_server.hosts.adapters.sockets.duplicate_check import Acts, DuplicateCheck
from bothy_server.hosts.adapters.sockets.limits import ControlLimits
from bothy_server.hosts.adapters.sockets.messages import Done, Messages, Refusal
from bothy_server.hosts.app.control import Control
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.identify import Admitted, Identify, Passed, Refused, Waits
from bothy_server.hosts.domain import duplicates
from bothy_server.kernel.clock import Clock, Timer
from bothy_server.kernel.unit import StorageUnavailable
from bothy_wire.close_codes import CloseCode
from bothy_wire.errors import FrameError
from bothy_wire.frames import (
    Decoder,
    Frame,
    HostControl,
    HostHeartbeat,
    HostHeartbeatAck,
    HostHello,
    HostIdentified,
    HostIdentify,
    HostPending,
    HostReport,
    HostSessionEnded,
    HostSessionStarted,
    Jwks,
)
from bothy_wire.ids import ConnId, HostId, SessionId
from bothy_wire.limits import CHALLENGE_BYTES, PROTOCOL_VERSION

_log = logging.getLogger(__name__)
_identify_frame = Decoder(HostIdentify)
_control_frame = Decoder(HostControl)


class _Task(Enum):
    """What the worker does besides the host's frames."""

    READ_ROW = auto()
    NOTE_SEEN = auto()
    SERVE = auto()
    DISABLE = auto()


class Connection:
    """Runs by :meth:`run`; everything else is the port ``ControlLink``."""

    def __init__(
        self,
        websocket: WebSocket,
        identify: Identify,
        control: Control,
        links: ControlLinks,
        clock: Clock,
        limits: ControlLimits,
    ) -> None:
        """``websocket`` is accepted."""
        self._messages = Messages(websocket, limits.waiting_frames)
        self._identify = identify
        self._control = control
        self._links = links
        self._clock = clock
        self._limits = limits
        self._work: asyncio.Queue[HostControl | _Task] = asyncio.Queue(limits.waiting_frames)
        self._challenge = secrets.token_bytes(CHALLENGE_BYTES)
        self._identity: HostIdentify | None = None
        self._judged = asyncio.Event()
        self._pairing_seq: int | None = None
        self._admitted: Admitted | None = None
        self._report: HostReport | None = None
        self._leaving = False
        self._waits = False
        self._retries: dict[_Task, Timer] = {}
        self._deferred: set[SessionId] = set()
        self._check: DuplicateCheck
        self._expiry: Timer | None = None
        self._expired = asyncio.Event()

    # ---- ControlLink ---------------------------------------------------------------------------------------------

    @property
    def host_id(self) -> HostId:
        """Whose it is, or says it is until it is admitted."""
        assert self._identity is not None
        return HostId(self._identity.host_id)

    @property
    def conn_id(self) -> ConnId:
        """Its identity, once admitted."""
        assert self._admitted is not None
        return self._admitted.conn_id

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out."""
        return self._leaving

    @property
    def eligible(self) -> bool:
        """Reported, and not on its way out."""
        return self._report is not None and not self._leaving

    @property
    def serving(self) -> bool:
        """Eligible, and no other connection speaks against it."""
        return self.eligible and self._check.serving

    def send(self, frame: Frame) -> None:
        """Queue one frame; a host that takes nothing while so many wait is closed."""
        if self._leaving or not self._messages.send(frame):
            self.close(CloseCode.STALLED)

    def defer(self, session_id: SessionId) -> None:
        """See the port. What is beyond the bound is asked for again (L6), or stands in its row (H3)."""
        if len(self._deferred) < self._limits.waiting_frames:
            self._deferred.add(session_id)

    def close(self, code: int, reason: str = "") -> None:
        """Close behind what is queued; the first reason counts. For everybody else it is gone now."""
        if not self._leaving:
            self._messages.close(code, reason)
            self._expiry = self._clock.call_at(self._clock.monotonic() + self._limits.close_linger, self._expired.set)
            self._leave()

    def judge_again(self) -> None:
        """The row changed."""
        self._enqueue(_Task.READ_ROW)

    def announced(self, conn_id: ConnId) -> None:
        """Another connection of the host has reported."""
        self._check.feed(duplicates.Announced(conn_id))

    def gone(self, conn_id: ConnId) -> None:
        """Another connection of the host went."""
        self._check.feed(duplicates.Gone(conn_id))

    # ---- the steps -----------------------------------------------------------------------------------------------

    async def run(self, jwks: Jwks) -> None:
        """Ends when the connection is closed, by whomever."""
        self.send(self._hello(jwks))
        try:
            async with asyncio.TaskGroup() as tasks:
                self._check = DuplicateCheck(self._acts(), self._clock, self._limits.duplicates, tasks)
                tasks.create_task(self._messages.write())
                tasks.create_task(self._read())
                tasks.create_task(self._handle())
                tasks.create_task(self._expire())
        except* (Done, WebSocketDisconnect):
            pass
        finally:
            self._leave()
            if self._expiry is not None:
                self._expiry.cancel()

    async def _read(self) -> None:
        """First the identify and the verdict on it, then frames; silence ends it."""
        try:
            await self._first()
            while not self._leaving:
                within = self._limits.heartbeat_interval * self._limits.miss_limit
                frame: HostControl = _control_frame.decode(await self._messages.text(within, CloseCode.SILENT))
                if isinstance(frame, HostHeartbeat):
                    self._alive()
                else:
                    self._enqueue(frame)
        except Refusal as refusal:
            self.close(refusal.code, refusal.reason)
        except FrameError as error:
            self.close(error.code, str(error))
        except WebSocketDisconnect:
            self._leave()  # at once: the worker may wait for the database
            raise

    async def _first(self) -> None:
        """Enter the connection under the host that it names, then have its row read (E2a)."""
        text = await self._messages.text(self._limits.identify_timeout, CloseCode.IDENTIFY_TIMEOUT)
        self._identity = _identify_frame.decode(text)
        if self._identity.version != PROTOCOL_VERSION:
            raise Refusal(CloseCode.VERSION_UNSUPPORTED, f"protocol version {PROTOCOL_VERSION} expected")
        self._links.register(self)
        self.judge_again()
        await self._judged.wait()

    async def _handle(self) -> None:
        """Do what needs the database, one after the other."""
        while True:
            item = await self._work.get()
            if self._leaving:
                continue  # nothing that a connection says after its end counts
            try:
                await self._do(item)
            except FrameError as error:
                self.close(error.code, str(error))
            except StorageUnavailable:
                if not self._leaving:  # else a timer would outlive the connection
                    self._storage_failed(item)

    async def _do(self, item: HostControl | _Task) -> None:
        match item:
            case _Task.READ_ROW:
                await self._judge()
            case _Task.NOTE_SEEN:
                await self._control.note_seen(self.host_id)
            case _Task.SERVE:
                await self._serve()
            case _Task.DISABLE:
                await self._disable()
            case HostReport() if self._admitted is not None:
                await self._take_report(self._admitted, item)
            case HostSessionStarted() | HostSessionEnded() if self._admitted is not None:
                await self._control.session(self, item)
            case HostReport() | HostSessionStarted() | HostSessionEnded():
                raise FrameError("this frame is not expected before host.identified")
            case HostHeartbeat():
                raise AssertionError("heartbeats are answered by the reader")
            case _:
                assert_never(item)

    async def _take_report(self, admitted: Admitted, frame: HostReport) -> None:
        """The first report makes the host connected, and may show that it is connected twice."""
        assert self._identity is not None
        if frame.join != admitted.join_offered:
            raise FrameError("the report does not hold the join value that was offered")
        await self._control.report(self, self._identity.boot_id, frame)
        if not self._leaving:
            self._report = frame
            self._check.feed(duplicates.Reported(self._links.older(self)))

    def _storage_failed(self, item: HostControl | _Task) -> None:
        """What the host repeats is left to it; what it says once makes it dial again; the row is read later."""
        match item:
            case HostReport():
                self.close(CloseCode.BUSY)
            case _Task.READ_ROW if not self._judged.is_set():
                self.close(CloseCode.BUSY)
            case _Task.READ_ROW | _Task.SERVE:
                self._retries[item] = self._clock.call_at(
                    self._clock.monotonic() + self._limits.storage_retry, lambda: self._enqueue(item)
                )
            case _Task.DISABLE:
                self._check.feed(duplicates.NotWritten())
            case _:
                pass

    async def _judge(self) -> None:
        """By the row as it is now: identify, identify again once an owner confirmed, or see whether it may stay."""
        assert self._identity is not None
        known = self._pairing_seq
        if known is not None:
            code = await self._control.refusal(self.host_id, known)
            if code is not None:
                self.close(code)
            if code is not None or not self._waits:
                return
        outcome = await self._identify.identify(self._challenge, self._identity)
        if self._leaving:
            return
        self._waits = isinstance(outcome, Waits)
        match outcome:
            case Refused(code):  # when the row changed between the two reads, it names the reason
                self.close((known and await self._control.refusal(self.host_id, known)) or code)
            case Passed(pairing_seq):
                self._pairing_seq = pairing_seq
                self._check.behind()
            case Waits(pairing_seq):
                self._trust()
                if self._pairing_seq is None:
                    self.send(HostPending())
                self._pairing_seq = pairing_seq
            case Admitted(conn_id, pairing_seq, join_offered) as admitted:
                self._admitted = admitted
                self._pairing_seq = pairing_seq
                self._trust()
                self.send(
                    HostIdentified(
                        conn_id=conn_id, pairing_seq=pairing_seq, join_offered=join_offered, limits=self._limits.host
                    )
                )
                self._check.admitted(conn_id)
                self._links.admit(self)
        self._judged.set()

    def _trust(self) -> None:
        """An identified host may send longer frames than a stranger."""
        self._messages.limit(self._limits.max_frame_bytes)

    def _alive(self) -> None:
        self.send(HostHeartbeatAck(server_time=self._clock.now().timestamp()))
        if self.eligible and self._control.alive(self):
            self._enqueue(_Task.NOTE_SEEN)

    def _enqueue(self, item: HostControl | _Task) -> None:
        try:
            self._work.put_nowait(item)
        except asyncio.QueueFull:
            self.close(CloseCode.RATE_LIMITED)

    # ---- duplicates ------------------------------------------------------------------------------------------------

    def _acts(self) -> Acts:
        return Acts(
            announce=self._announce,
            ping=self._messages.ping,
            serve=lambda: self._enqueue(_Task.SERVE),
            disable=lambda: self._enqueue(_Task.DISABLE),
            close=self._nobody_answers,
        )

    def _announce(self) -> None:
        self._control.announce(self)
        self._links.announced(self.host_id, self.conn_id)

    async def _serve(self) -> None:
        assert self._identity is not None
        if self._report is not None and self.serving:
            deferred = frozenset(self._deferred)
            await self._control.serve(self, self._identity.boot_id, self._report, deferred)
            self._deferred -= deferred

    async def _disable(self) -> None:
        """Unless what spoke against this connection went meanwhile. Those that have to go read it from the row."""
        assert self._pairing_seq is not None
        if self._check.answered:
            await self._control.disable(self.host_id, self._pairing_seq)
            self._links.judge_again(self.host_id)

    def _nobody_answers(self) -> None:
        if self._admitted is not None:
            self.close(CloseCode.SILENT)
            return
        _log.warning("control connection refused", extra={"bothy.close.code": int(CloseCode.SILENT)})
        self.close(CloseCode.SILENT, "join value behind: a copy of this host, or one restored from a backup")

    # ---- the ends --------------------------------------------------------------------------------------------------

    async def _expire(self) -> None:
        """A host that does not take the close frame in time loses the connection."""
        await self._expired.wait()
        raise Done

    def _hello(self, jwks: Jwks) -> HostHello:
        return HostHello(
            challenge=self._challenge,
            jwks=jwks,
            heartbeat_interval_s=self._limits.heartbeat_interval,
            miss_limit=self._limits.miss_limit,
            server_time=self._clock.now().timestamp(),
            protocol_min=PROTOCOL_VERSION,
            protocol_max=PROTOCOL_VERSION,
        )

    def _leave(self) -> None:
        """Be gone for everybody else, once."""
        if self._leaving:
            return
        self._leaving = True
        self._check.end()
        for timer in self._retries.values():
            timer.cancel()
        if self._identity is not None:
            self._links.unregister(self)
        if self._report is not None:
            self._control.left(self)
