"""The control socket: admit, accept, join, read, leave (``docs/spec/protocol.md``, Control)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from bothy_server.hosts.app.control import Control
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.identify import Admitted, Identify, Refused, Waits
from bothy_server.kernel.clock import Clock
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
    HostKeys,
    HostLimits,
    HostPending,
    HostReport,
    HostSessionEnded,
    HostSessionStarted,
    Jwks,
    encode,
)
from bothy_wire.ids import ConnId, HostId
from bothy_wire.limits import CHALLENGE_BYTES, CONTROL_SUBPROTOCOL, PROTOCOL_VERSION

_log = logging.getLogger(__name__)
_identify_frame = Decoder(HostIdentify)
_control_frame = Decoder(HostControl)


@dataclass(frozen=True, slots=True)
class ControlLimits:
    """Seconds, bytes and counts (keys ``wire.*``, ``terminal.*``)."""

    identify_timeout: float
    max_frame_bytes: int
    heartbeat_interval: float
    miss_limit: int
    queue_frames: int
    close_linger: float
    host: HostLimits


class ControlSockets:
    """Serves every control connection of the node."""

    def __init__(
        self,
        identify: Identify,
        control: Control,
        links: ControlLinks,
        clock: Clock,
        jwks: Callable[[], Jwks],
        limits: ControlLimits,
    ) -> None:
        """``jwks`` gives the published keys of the moment."""
        self._identify = identify
        self._control = control
        self._links = links
        self._clock = clock
        self._jwks = jwks
        self._limits = limits
        self._open: set[_Connection] = set()

    @property
    def connections(self) -> int:
        """Control connections on this node, also those that wait for a confirmation."""
        return len(self._open)

    async def serve(self, websocket: WebSocket) -> None:
        """One connection from its handshake to its end."""
        if CONTROL_SUBPROTOCOL not in websocket.scope["subprotocols"]:
            await websocket.accept()
            await websocket.close(CloseCode.VERSION_UNSUPPORTED, "subprotocol bothy.control.v1 expected")
            return
        await websocket.accept(CONTROL_SUBPROTOCOL)
        connection = _Connection(websocket, self._identify, self._control, self._links, self._clock, self._limits)
        self._open.add(connection)
        try:
            await connection.run(self._jwks())
        finally:
            self._open.discard(connection)

    def keys_changed(self) -> None:
        """Tell every host the published keys."""
        for connection in list(self._open):
            connection.send(HostKeys(jwks=self._jwks()))

    def close_all(self, code: int, reason: str) -> None:
        """Close every connection; for the stop of the node."""
        for connection in list(self._open):
            connection.close(code, reason)


class _Connection:
    """One control connection; a ``ControlLink`` once it is admitted."""

    def __init__(
        self,
        websocket: WebSocket,
        identify: Identify,
        control: Control,
        links: ControlLinks,
        clock: Clock,
        limits: ControlLimits,
    ) -> None:
        self._websocket = websocket
        self._identify = identify
        self._control = control
        self._links = links
        self._clock = clock
        self._limits = limits
        self._outgoing: asyncio.Queue[Frame | tuple[int, str]] = asyncio.Queue(limits.queue_frames)
        self._changed = asyncio.Event()
        self._leaving = False
        self._admitted: Admitted | None = None
        self._identity: HostIdentify | None = None
        self._pairing_seq = 0
        self._reported = False

    # ---- ControlLink ---------------------------------------------------------------------------------------------

    @property
    def host_id(self) -> HostId:
        """Whose."""
        assert self._identity is not None
        return HostId(self._identity.host_id)

    @property
    def conn_id(self) -> ConnId:
        """Its identity."""
        assert self._admitted is not None
        return self._admitted.conn_id

    @property
    def pairing_seq(self) -> int:
        """The pairing whose key it proved."""
        return self._pairing_seq

    @property
    def eligible(self) -> bool:
        """Reported, and not on its way out."""
        return self._reported and not self._leaving

    def send(self, frame: Frame) -> None:
        """Queue one frame; a host that takes nothing while so many wait is closed."""
        if self._leaving:
            return
        try:
            self._outgoing.put_nowait(frame)
        except asyncio.QueueFull:
            self.close(CloseCode.STALLED)

    def close(self, code: int, reason: str = "") -> None:
        """Close behind what is queued; the first reason counts."""
        if self._leaving:
            return
        self._leaving = True
        with contextlib.suppress(asyncio.QueueEmpty):
            while self._outgoing.full():
                self._outgoing.get_nowait()
        self._outgoing.put_nowait((int(code), fit_reason(reason)))

    def judge_again(self) -> None:
        """The row changed."""
        self._changed.set()

    # ---- the five steps ------------------------------------------------------------------------------------------

    async def run(self, jwks: Jwks) -> None:
        """Ends when the connection is closed, by whomever."""
        try:
            async with asyncio.TaskGroup() as tasks:
                writing = tasks.create_task(self._write())
                tasks.create_task(self._read(jwks, tasks))
                await writing
                raise _Done
        except* (_Done, WebSocketDisconnect):
            pass
        finally:
            self._leave()

    async def _read(self, jwks: Jwks, tasks: asyncio.TaskGroup) -> None:
        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        self.send(self._hello(challenge, jwks))
        try:
            async with asyncio.timeout(self._limits.identify_timeout):
                text = await self._text()
        except TimeoutError:
            self.close(CloseCode.IDENTIFY_TIMEOUT)
            return
        if text is None:
            return
        try:
            self._identity = _identify_frame.decode(text)
        except FrameError as error:
            self.close(error.code, str(error))
            return
        if self._identity.version != PROTOCOL_VERSION:
            self.close(CloseCode.VERSION_UNSUPPORTED, f"protocol version {PROTOCOL_VERSION} expected")
            return
        if not await self._admit(challenge):
            return
        tasks.create_task(self._watch_row(challenge))
        await self._frames()

    async def _admit(self, challenge: bytes) -> bool:
        """Identify, or identify again after a confirmation; whether the connection stays."""
        assert self._identity is not None
        try:
            outcome = await self._identify.identify(challenge, self._identity)
        except StorageUnavailable:
            self.close(CloseCode.BUSY)
            return False
        match outcome:
            case Refused(code, reason):
                if reason:
                    _log.warning("control connection refused", extra={"bothy.close.code": int(code)})
                self.close(code, reason)
                return False
            case Waits(pairing_seq):
                self._trust()
                if not self._pairing_seq:
                    self.send(HostPending())
                self._pairing_seq = pairing_seq
            case Admitted(conn_id, pairing_seq, join_offered):
                self._admitted = outcome
                self._pairing_seq = pairing_seq
                self._links.register(self)
                self._trust()
                self.send(
                    HostIdentified(
                        conn_id=conn_id, pairing_seq=pairing_seq, join_offered=join_offered, limits=self._limits.host
                    )
                )
        return True

    def _trust(self) -> None:
        """An identified host may send longer frames than a stranger."""
        self._websocket.scope["extensions"]["bothy.message_limit"](self._limits.max_frame_bytes)

    async def _watch_row(self, challenge: bytes) -> None:
        """Each time the row changed: proceed when it was confirmed, go when it says so."""
        self._changed.set()  # the row may have changed between the identify and the registration (E2a)
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                if self._admitted is None:
                    if not await self._admit(challenge):
                        return
                else:
                    code = await self._control.refusal(self.host_id, self._pairing_seq)
                    if code is not None:
                        self.close(code)
                        return
            except StorageUnavailable:
                continue  # the gap that follows an outage asks again

    async def _frames(self) -> None:
        while True:
            silence = self._limits.heartbeat_interval * self._limits.miss_limit
            try:
                async with asyncio.timeout(silence):
                    text = await self._text()
            except TimeoutError:
                self.close(CloseCode.SILENT)
                return
            if text is None:
                return
            try:
                await self._frame(_control_frame.decode(text))
            except FrameError as error:
                self.close(error.code, str(error))
                return
            except StorageUnavailable:
                continue  # the host says it again with its next heartbeat

    async def _frame(self, frame: HostControl) -> None:
        assert self._identity is not None
        match frame:
            case HostHeartbeat():
                self.send(HostHeartbeatAck(server_time=self._clock.now().timestamp()))
                if self.eligible:
                    await self._control.heartbeat(self)
            case HostReport() if self._admitted is not None:
                if frame.join != self._admitted.join_offered:
                    raise FrameError("the report does not hold the join value that was offered")
                self._reported = True
                await self._control.report(self, self._identity.boot_id, frame)
            case HostSessionStarted() | HostSessionEnded() if self._reported:
                await self._control.session(self, frame)
            case _:
                raise FrameError("this frame is not expected before host.report")

    async def _text(self) -> str | None:
        """One text message, or None after closing for what is none."""
        message: dict[str, Any] = dict(await self._websocket.receive())
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", CloseCode.ABNORMAL))
        text: str | None = message.get("text")
        if text is None:
            self.close(CloseCode.PROTOCOL_VIOLATION, "text frames only")
        return text

    async def _write(self) -> None:
        while True:
            item = await self._outgoing.get()
            if isinstance(item, tuple):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._limits.close_linger):
                        await self._websocket.close(*item)
                return
            await self._websocket.send_text(encode(item))

    def _hello(self, challenge: bytes, jwks: Jwks) -> HostHello:
        return HostHello(
            challenge=challenge,
            jwks=jwks,
            heartbeat_interval_s=self._limits.heartbeat_interval,
            miss_limit=self._limits.miss_limit,
            server_time=self._clock.now().timestamp(),
            protocol_min=PROTOCOL_VERSION,
            protocol_max=PROTOCOL_VERSION,
        )

    def _leave(self) -> None:
        was_eligible, self._leaving = self._reported, True
        if self._admitted is not None:
            self._links.unregister(self)
            if was_eligible:
                self._control.left(self)


class _Done(Exception):  # noqa: N818 - ends a task group
    """The connection was closed by us."""
