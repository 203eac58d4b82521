"""The control connection: who this host is, what it runs, and what the server asks of it.

One connection at a time; the old socket is aborted before a new one is dialled. Sessions do not notice when it is lost.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import random
import secrets
import time
from dataclasses import dataclass, field
from typing import assert_never
from uuid import UUID

from websockets.exceptions import ConnectionClosed

from bothy_host import link
from bothy_host.clock import steady
from bothy_host.dial import NO_CODE, Connection, DialError, Outbox, close_code, dialled, leave
from bothy_host.host import Host
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
from bothy_wire.limits import CONTROL_PATH, CONTROL_SUBPROTOCOL, PROTOCOL_VERSION
from bothy_wire.signing import Purpose, sign

_log = logging.getLogger(__name__)
_hello = Decoder(HostHello)
_frames = Decoder(ServerControl)


@dataclass(eq=False)
class _Talk:
    """One connection after its hello."""

    connection: Connection
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
        self._state: link.State = link.Idle()
        self._boot_id = _new_boot_id()

    async def run(self) -> int:
        """Dial and serve again and again; returns the close code that stops this host for good."""
        self._feed(link.Wanted())
        while True:
            match self._state:
                case link.Dialling():
                    self._feed(link.Lost(await self._connection()))
                case link.Waiting(until):
                    await asyncio.sleep(max(until - steady(), 0))
                    self._feed(link.Passed())
                case link.Stopped(code):
                    return code
                case link.Idle() | link.Up():
                    raise AssertionError("the control connection has no such rest")
                case unreachable:
                    assert_never(unreachable)

    def _feed(self, event: link.Event) -> None:
        self._state, _ = link.step(
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
            ) as connection:
                try:
                    code = await self._lead(connection)
                except FrameError as error:
                    # A frame that we do not know may be known after an update of either end, so this is no end for good.
                    _log.error("control connection: %s", error)
                    await leave(connection, error.code, str(error))
                    return CloseCode.INTERNAL
        except DialError as error:
            _log.warning("control connection: %s cannot be reached: %s", audience, error)
            return NO_CODE
        except TimeoutError:
            _log.warning("control connection: %s said nothing", audience)
            return NO_CODE
        except StateError as error:
            # A full disk is no reason to end the sessions; without the value on the disk the host may not report.
            _log.error("%s", error)
            return CloseCode.INTERNAL
        except ConnectionClosed as error:
            code = close_code(error)
        _log.info("control connection: %s (%d)", text_of(code), code)
        return code

    async def _lead(self, connection: Connection) -> int:
        async with asyncio.timeout(self._host.settings.host.dial_timeout):
            hello = _hello.decode(await connection.recv())
        assert isinstance(hello, HostHello)
        if not hello.protocol_min <= PROTOCOL_VERSION <= hello.protocol_max:
            _log.error(
                "the server speaks protocol %d to %d, this host %d",
                hello.protocol_min,
                hello.protocol_max,
                PROTOCOL_VERSION,
            )
            return CloseCode.VERSION_UNSUPPORTED
        if hello.heartbeat_interval_s <= 0:
            raise FrameError("a heartbeat needs an interval")
        self._host.clock.set(hello.server_time)
        self._host.tokens.take_keys(hello.jwks)
        await connection.send(encode(self._identify(hello)))
        talk = _Talk(connection, hello)
        tasks = [asyncio.create_task(talk.outbox.empty_into(connection)), asyncio.create_task(self._beat(talk))]
        self._sessions.tell = lambda news: _tell(talk, news)
        try:
            while True:
                await self._frame(talk, await connection.recv())
        finally:
            talk.eligible = False
            for task in tasks:
                task.cancel()

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

    async def _frame(self, talk: _Talk, text: str | bytes) -> None:
        frame: ServerControl = _frames.decode(text)
        match frame:
            case HostPending():
                self._feed(link.Accepted())
                _log.info("paired; waiting for the owner to confirm this host's fingerprint")
            case HostIdentified():
                self._feed(link.Accepted())
                await self._host.pairing.confirm(pairing_seq=frame.pairing_seq, join=frame.join_offered)
                self._host.take_limits(frame.limits)
                self._report(talk, frame.join_offered)
            case HostHeartbeatAck():
                talk.answered_at = steady()
                self._host.clock.set(frame.server_time)
            case HostKeys():
                self._host.tokens.take_keys(frame.jwks)
            case HostSessionOpen():
                self._sessions.open(frame)
            case HostSessionClose():
                self._sessions.close(frame)
            case HostSessionRecorded():
                self._sessions.recorded(frame)
            case HostHello():
                raise FrameError("a second hello")
            case unreachable:
                assert_never(unreachable)

    def _report(self, talk: _Talk, join: str) -> None:
        settings = self._host.settings
        report = HostReport(
            join=join,
            profiles={name: list(profile.allowed) for name, profile in settings.profile.items()},
            require_local_confirm=settings.require_local_confirm,
            sessions=self._sessions.report(),
            os=platform.system().lower(),
            arch=platform.machine(),
        )
        talk.outbox.put(encode(report))
        talk.eligible = True
        self._repeat(talk)
        _log.info("connected to %s", self._host.pairing.state.audience)

    def _repeat(self, talk: _Talk) -> None:
        for news in self._sessions.unrecorded():
            talk.outbox.put(encode(news))

    async def _beat(self, talk: _Talk) -> None:
        """Heartbeats; a server that answers none for too long is as good as gone, whatever the socket says."""
        while True:
            await asyncio.sleep(talk.hello.heartbeat_interval_s)
            if steady() - talk.answered_at >= talk.patience:
                _log.warning("control connection: no answer to %d heartbeats", talk.hello.miss_limit)
                talk.connection.transport.abort()
                return
            talk.outbox.put(encode(HostHeartbeat()))
            if talk.eligible:
                self._repeat(talk)


def _tell(talk: _Talk, news: News) -> None:
    if talk.eligible:
        talk.outbox.put(encode(news))


def _new_boot_id() -> UUID:
    """A UUIDv7 (RFC 9562, 5.7) for this run of the service."""
    value = int(time.time() * 1000) << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    return UUID(int=value)
