"""The control connection: who this host is, what it runs, and what the server asks of it.

One connection at a time; the old socket is aborted before a new one is dialled. Sessions do not notice when it is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import platform
import random
import secrets
import time
from dataclasses import dataclass, field
from typing import assert_never

from websockets.exceptions import ConnectionClosed

from bothy_host import redial
from bothy_host.clock import steady
from bothy_host.dial import NO_CODE, DialError, Socket, close_code, dialled, leave
from bothy_host.host import Host
from bothy_host.outbox import Outbox
from bothy_host.sessions import News, Sessions
from bothy_host.state import StateError
from bothy_wire.close_codes import CloseCode, text_of
from bothy_wire.errors import FrameError
from bothy_wire.frames import (
    Decoder,
    HostHeartbeat,
    HostHeartbeatAck,
    HostHello,
    HostIdentified,
    HostIdentify,
    HostKeys,
    HostPending,
    HostReport,
    HostSessionClose,
    HostSessionOpen,
    HostSessionRecorded,
    ServerControl,
    encode,
)
from bothy_wire.ids import uuid7
from bothy_wire.limits import CONTROL_PATH, CONTROL_SUBPROTOCOL, PROTOCOL_VERSION, data_path
from bothy_wire.signing import Purpose, sign

_log = logging.getLogger(__name__)

_SHORTEST_INTERVAL_S = 0.01
"""A relay that asks for more heartbeats than this would keep the host from everything else."""
_hello = Decoder(HostHello)
_frames = Decoder(ServerControl)


@dataclass(eq=False)
class _Connection:
    """One control connection after its hello."""

    socket: Socket
    hello: HostHello
    outbox: Outbox = field(default_factory=Outbox)
    answered_at: float = field(default_factory=steady)
    eligible: bool = False

    @property
    def patience(self) -> float:
        """Seconds without an answer to a heartbeat that this connection may take."""
        return self.hello.heartbeat_interval_s * self.hello.miss_limit


class Control:
    """Keeps the host reachable while :meth:`run` runs."""

    def __init__(self, host: Host, sessions: Sessions) -> None:
        self._host = host
        self._sessions = sessions
        self._state: redial.State = redial.Idle()
        self._awake = asyncio.Event()
        self._socket: Socket | None = None
        self._boot_id = uuid7(int(time.time() * 1000), secrets.randbits(74))

    async def run(self) -> int:
        """Dial and serve again and again; returns the close code that stops this host for good."""
        self._feed(redial.Wanted())
        while True:
            match self._state:
                case redial.Dialling():
                    self._feed(redial.Lost(await self._connection()))
                case redial.Waiting(until):
                    self._awake.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._awake.wait(), max(until - steady(), 0))
                    self._feed(redial.Passed())
                case redial.Stopped(code):
                    return code
                case redial.Idle() | redial.Up():
                    raise AssertionError("the control connection has no such rest")
                case unreachable:
                    assert_never(unreachable)

    def woke(self) -> None:
        """This machine slept: what was up is most likely dead, and who waits for a dial waits no longer."""
        self._feed(redial.Woke())
        self._awake.set()
        if self._socket is not None:
            self._socket.transport.abort()

    def _feed(self, event: redial.Event) -> None:
        self._state, _ = redial.step(
            self._state,
            event,
            steady(),
            client="control",
            backoff=self._host.settings.host.backoff(),
            chance=random.random(),  # noqa: S311 - jitter
        )

    async def _connection(self) -> int:
        """One connection from its dial to its end; returns its close code."""
        audience = self._host.pairing.state.audience
        try:
            async with dialled(
                audience, CONTROL_PATH, CONTROL_SUBPROTOCOL, self._host.manner, self._host.tls
            ) as self._socket:
                code = await self._lead(self._socket)
        except DialError as error:
            _log.warning("control connection: %s", error)
            return NO_CODE
        except TimeoutError:
            _log.warning("control connection: %s said nothing", audience)
            return NO_CODE
        except ExceptionGroup:
            # A defect in here is no reason to end people's sessions, and the next connection may not meet it.
            _log.exception("control connection failed")
            return CloseCode.INTERNAL
        finally:
            self._socket = None
        _log.info("control connection: %s (%d)", text_of(code), code)
        return code

    async def _lead(self, socket: Socket) -> int:
        try:
            async with asyncio.timeout(self._host.settings.host.dial_timeout):
                hello = _hello.decode(await socket.recv())
            assert isinstance(hello, HostHello)
            if not hello.protocol_min <= PROTOCOL_VERSION <= hello.protocol_max:
                _log.error(
                    "the relay speaks protocol %d to %d, this host %d",
                    hello.protocol_min,
                    hello.protocol_max,
                    PROTOCOL_VERSION,
                )
                return CloseCode.VERSION_UNSUPPORTED
            if hello.heartbeat_interval_s < _SHORTEST_INTERVAL_S:
                raise FrameError("a heartbeat needs an interval")
            await socket.send(encode(self._identify(hello)))
        except ConnectionClosed as error:
            return close_code(error)
        except FrameError as error:
            return await _refuse(socket, error)
        self._host.clock.set(hello.server_time)
        self._host.tokens.take_keys(hello.jwks)
        return await self._serve(_Connection(socket, hello))

    async def _serve(self, connection: _Connection) -> int:
        """Read, write and beat side by side; returns the close code. A defect of one ends all three."""
        self._sessions.tell = lambda news: _tell(connection, news)
        try:
            async with asyncio.TaskGroup() as group:
                others = [group.create_task(each) for each in (_write(connection), self._beat(connection))]
                code = await self._read(connection)
                for task in others:
                    task.cancel()
        finally:
            connection.eligible = False
        return code

    async def _read(self, connection: _Connection) -> int:
        try:
            while True:
                await self._frame(connection, await connection.socket.recv())
        except ConnectionClosed as error:
            return close_code(error)
        except FrameError as error:
            return await _refuse(connection.socket, error)
        except StateError as error:
            # A full disk is no reason to end the sessions; without the value on the disk the host may not report.
            _log.error("%s", error)
            return CloseCode.INTERNAL

    def _identify(self, hello: HostHello) -> HostIdentify:
        state = self._host.pairing.state
        signature = sign(
            state.signer,
            Purpose.HOST_IDENTIFY,
            state.audience,
            hello.challenge,
            str(state.host_id),
            str(self._boot_id),
            str(PROTOCOL_VERSION),
            state.join,
        )
        return HostIdentify(
            host_id=state.host_id,
            boot_id=self._boot_id,
            version=PROTOCOL_VERSION,
            join=state.join,
            signature=signature,
        )

    async def _frame(self, connection: _Connection, text: str | bytes) -> None:
        frame: ServerControl = _frames.decode(text)
        match frame:
            case HostPending():
                self._feed(redial.Accepted())
                _log.info("paired; waiting for the owner to confirm this host's fingerprint")
            case HostIdentified():
                self._feed(redial.Accepted())
                await self._host.pairing.confirm(pairing_seq=frame.pairing_seq, join=frame.join_offered)
                self._host.take_limits(frame.limits)
                self._report(connection, frame.join_offered)
            case HostHeartbeatAck():
                connection.answered_at = steady()
                self._host.clock.set(frame.server_time)
            case HostKeys():
                self._host.tokens.take_keys(frame.jwks)
            case HostSessionOpen():
                if frame.data_path != data_path(frame.session_id):
                    raise FrameError("a session has one path")  # any other could lead to another machine
                self._sessions.open(frame)
            case HostSessionClose():
                self._sessions.close(frame)
            case HostSessionRecorded():
                self._sessions.recorded(frame)
            case HostHello():
                raise FrameError("a second hello")
            case unreachable:
                assert_never(unreachable)

    def _report(self, connection: _Connection, join: str) -> None:
        settings = self._host.settings
        report = HostReport(
            join=join,
            profiles={name: list(profile.allowed) for name, profile in settings.profile.items()},
            require_local_confirm=settings.require_local_confirm,
            sessions=self._sessions.report(),
            os=platform.system().lower(),
            arch=platform.machine(),
        )
        # What ended meanwhile comes first: a session that the report does not list would be lost.
        connection.eligible = True
        self._repeat(connection)
        connection.outbox.put(report)
        _log.info("connected to %s", self._host.pairing.state.audience)

    def _repeat(self, connection: _Connection) -> None:
        for news in self._sessions.unrecorded():
            connection.outbox.put(news)

    async def _beat(self, connection: _Connection) -> None:
        """Heartbeats; a server that answers none for too long is as good as gone, whatever the socket says."""
        while True:
            await asyncio.sleep(connection.hello.heartbeat_interval_s)
            if steady() - connection.answered_at >= connection.patience:
                _log.warning("control connection: no answer to %d heartbeats", connection.hello.miss_limit)
                connection.socket.transport.abort()
                return
            connection.outbox.put(HostHeartbeat())
            if connection.eligible:
                self._repeat(connection)


def _tell(connection: _Connection, news: News) -> None:
    if connection.eligible:
        connection.outbox.put(news)


async def _write(connection: _Connection) -> None:
    with contextlib.suppress(ConnectionClosed):  # the reader hears of it too
        await connection.outbox.empty_into(connection.socket)


async def _refuse(socket: Socket, error: FrameError) -> int:
    """A frame that we do not know may be known after an update of either end, so this is no end for good."""
    _log.error("control connection: %s", error)
    await leave(socket, error.code, str(error))
    return CloseCode.INTERNAL
