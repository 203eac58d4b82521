"""One control connection from its hello to its end; a ``ControlLink`` once the host is admitted.

Three tasks. The reader answers heartbeats by itself, so that a database that is slow or away never makes a host believe
its connection dead. Whatever needs the database is done by the worker, in its order. The writer alone writes.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, assert_never

from starlette.websockets import WebSocket, WebSocketDisconnect

from bothy_server.hosts.app.control import Control
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.identify import Admitted, Identify, Refused, Waits
from bothy_server.kernel.clock import Clock, Timer
from bothy_server.kernel.unit import StorageUnavailable
from bothy_wire.close_codes import CloseCode, fit_reason
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
    HostLimits,
    HostPending,
    HostReport,
    HostSessionEnded,
    HostSessionStarted,
    Jwks,
    encode,
)
from bothy_wire.ids import ConnId, HostId
from bothy_wire.limits import CHALLENGE_BYTES, PROTOCOL_VERSION

_log = logging.getLogger(__name__)
_identify_frame = Decoder(HostIdentify)
_control_frame = Decoder(HostControl)


@dataclass(frozen=True, slots=True)
class ControlLimits:
    """Seconds, bytes and counts (keys ``wire.*``, ``terminal.*``, ``hosts.*``, ``database.retry_after``)."""

    identify_timeout: float
    max_frame_bytes: int
    heartbeat_interval: float
    miss_limit: int
    waiting_frames: int
    close_linger: float
    storage_retry: float
    host: HostLimits


class _Task(Enum):
    """What the worker does besides the host's frames."""

    READ_ROW = auto()
    NOTE_SEEN = auto()


class _Done(Exception):  # noqa: N818 - ends a task group
    """The close frame is written."""


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
        self._websocket = websocket
        self._identify = identify
        self._control = control
        self._links = links
        self._clock = clock
        self._limits = limits
        self._outgoing: asyncio.Queue[Frame | tuple[int, str]] = asyncio.Queue(limits.waiting_frames + 1)
        self._work: asyncio.Queue[HostControl | _Task] = asyncio.Queue(limits.waiting_frames)
        self._challenge = secrets.token_bytes(CHALLENGE_BYTES)
        self._identity: HostIdentify | None = None
        self._judged = asyncio.Event()
        self._pairing_seq: int | None = None
        self._admitted: Admitted | None = None
        self._reported = False
        self._leaving = False
        self._retry: Timer | None = None
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
    def eligible(self) -> bool:
        """Reported, and not on its way out."""
        return self._reported and not self._leaving

    def send(self, frame: Frame) -> None:
        """Queue one frame; a host that takes nothing while so many wait is closed."""
        if not self._leaving and self._outgoing.qsize() < self._limits.waiting_frames:
            self._outgoing.put_nowait(frame)
        else:
            self.close(CloseCode.STALLED)

    def close(self, code: int, reason: str = "") -> None:
        """Close behind what is queued; the first reason counts."""
        if not self._leaving:
            self._leaving = True
            self._outgoing.put_nowait((int(code), fit_reason(reason)))
            self._expiry = self._clock.call_at(self._clock.monotonic() + self._limits.close_linger, self._expired.set)

    def judge_again(self) -> None:
        """The row changed."""
        self._enqueue(_Task.READ_ROW)

    # ---- the steps -----------------------------------------------------------------------------------------------

    async def run(self, jwks: Jwks) -> None:
        """Ends when the connection is closed, by whomever."""
        self.send(self._hello(jwks))
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._write())
                tasks.create_task(self._read())
                tasks.create_task(self._handle())
                tasks.create_task(self._expire())
        except* (_Done, WebSocketDisconnect):
            pass
        finally:
            self._leave()

    async def _read(self) -> None:
        """First the identify and the verdict on it, then frames; silence ends it."""
        try:
            await self._first()
            while not self._leaving:
                within = self._limits.heartbeat_interval * self._limits.miss_limit
                frame: HostControl = _control_frame.decode(await self._text(within, CloseCode.SILENT))
                if isinstance(frame, HostHeartbeat):
                    self._alive()
                else:
                    self._enqueue(frame)
        except _Refusal as refusal:
            self.close(refusal.code, refusal.reason)
        except FrameError as error:
            self.close(error.code, str(error))

    async def _first(self) -> None:
        """Enter the connection under the host that it names, then have its row read (E2a)."""
        text = await self._text(self._limits.identify_timeout, CloseCode.IDENTIFY_TIMEOUT)
        self._identity = _identify_frame.decode(text)
        if self._identity.version != PROTOCOL_VERSION:
            raise _Refusal(CloseCode.VERSION_UNSUPPORTED, f"protocol version {PROTOCOL_VERSION} expected")
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
                self._storage_failed(item)

    async def _do(self, item: HostControl | _Task) -> None:
        match item:
            case _Task.READ_ROW:
                await self._judge()
            case _Task.NOTE_SEEN:
                await self._control.note_seen(self.host_id)
            case HostReport() if self._admitted is not None and self._identity is not None:
                if item.join != self._admitted.join_offered:
                    raise FrameError("the report does not hold the join value that was offered")
                await self._control.store_report(self, item)
                self._reported = True
                await self._control.eligible(self, self._identity.boot_id, item)
            case HostSessionStarted() | HostSessionEnded() if self._admitted is not None:
                await self._control.session(self, item)
            case HostReport() | HostSessionStarted() | HostSessionEnded():
                raise FrameError("this frame is not expected before host.identified")
            case HostHeartbeat():
                raise AssertionError("heartbeats are answered by the reader")
            case _:
                assert_never(item)

    def _storage_failed(self, item: HostControl | _Task) -> None:
        """What the host repeats is left to it; what it says once makes it dial again; the row is read later."""
        match item:
            case HostReport():
                self.close(CloseCode.BUSY)
            case _Task.READ_ROW if not self._judged.is_set():
                self.close(CloseCode.BUSY)
            case _Task.READ_ROW:
                self._retry = self._clock.call_at(
                    self._clock.monotonic() + self._limits.storage_retry, self.judge_again
                )
            case _:
                pass

    async def _judge(self) -> None:
        """By the row as it is now: identify, identify again once an owner confirmed, or see whether it may stay."""
        assert self._identity is not None
        if self._pairing_seq is not None:
            code = await self._control.refusal(self.host_id, self._pairing_seq)
            if code is not None:
                self.close(code)
            if code is not None or self._admitted is not None:
                return
        match await self._identify.identify(self._challenge, self._identity):
            case Refused(code, reason):
                if reason:
                    _log.warning("control connection refused", extra={"bothy.close.code": int(code)})
                self.close(code, reason)
            case Waits(pairing_seq):
                self._trust()
                if self._pairing_seq is None:
                    self.send(HostPending())
                self._pairing_seq = pairing_seq
            case Admitted(conn_id, pairing_seq, join_offered) as admitted:
                self._admitted = admitted
                self._pairing_seq = pairing_seq
                self._links.admit(self)
                self._trust()
                self.send(
                    HostIdentified(
                        conn_id=conn_id, pairing_seq=pairing_seq, join_offered=join_offered, limits=self._limits.host
                    )
                )
        self._judged.set()

    def _trust(self) -> None:
        """An identified host may send longer frames than a stranger."""
        self._websocket.scope["extensions"]["bothy.message_limit"](self._limits.max_frame_bytes)

    def _alive(self) -> None:
        self.send(HostHeartbeatAck(server_time=self._clock.now().timestamp()))
        if self.eligible and self._control.alive(self):
            self._enqueue(_Task.NOTE_SEEN)

    def _enqueue(self, item: HostControl | _Task) -> None:
        try:
            self._work.put_nowait(item)
        except asyncio.QueueFull:
            self.close(CloseCode.RATE_LIMITED)

    async def _text(self, within: float, late: CloseCode) -> str:
        """The next message, which must be text."""
        try:
            async with asyncio.timeout(within):
                message: dict[str, Any] = dict(await self._websocket.receive())
        except TimeoutError as error:
            raise _Refusal(late) from error
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", CloseCode.ABNORMAL))
        text: str | None = message.get("text")
        if text is None:
            raise _Refusal(CloseCode.PROTOCOL_VIOLATION, "text frames only")
        return text

    async def _write(self) -> None:
        while True:
            item = await self._outgoing.get()
            if isinstance(item, tuple):
                await self._websocket.close(*item)
                raise _Done
            await self._websocket.send_text(encode(item))

    async def _expire(self) -> None:
        """A host that does not take the close frame in time loses the connection."""
        await self._expired.wait()
        raise _Done

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
        self._leaving = True
        for timer in (self._retry, self._expiry):
            if timer is not None:
                timer.cancel()
        if self._identity is not None:
            self._links.unregister(self)
        if self._reported:
            self._control.left(self)


class _Refusal(Exception):  # noqa: N818 - an outcome of reading
    def __init__(self, code: CloseCode, reason: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.reason = reason
