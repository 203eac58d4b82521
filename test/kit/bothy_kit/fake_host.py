"""A host that speaks the real protocol, step by step."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Self, TypeVar
from uuid import UUID, uuid4

import httpx2 as httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from bothy_kit.fake_device import b64
from bothy_kit.sockets import PATIENCE_S, Closed, FakeSide
from bothy_wire.codes import code_hash
from bothy_wire.frames import (
    DataHello,
    DataIdentify,
    Decoder,
    Frame,
    HostHeartbeat,
    HostHeartbeatAck,
    HostHello,
    HostIdentified,
    HostIdentify,
    HostReport,
    HostSessionEnded,
    HostSessionRecorded,
    HostSessionStarted,
    ReportedSession,
    ServerControl,
    SideAccepted,
    encode,
)
from bothy_wire.ids import HostId, SessionId
from bothy_wire.limits import CONTROL_PATH, CONTROL_SUBPROTOCOL, DATA_SUBPROTOCOL, PROTOCOL_VERSION, data_path
from bothy_wire.signing import Purpose, sign

F = TypeVar("F", bound=Frame)
_frames = Decoder(ServerControl)


class FakeHost:
    """One paired machine. ``origin`` is what it signs for, ``url`` where it dials."""

    def __init__(self, origin: str, url: str) -> None:
        self.origin = origin
        self.url = url
        self.signing_key = Ed25519PrivateKey.generate()
        self.channel_key = X25519PrivateKey.generate()
        self.host_id = HostId(UUID(int=0))
        self.pairing_seq = 0
        self.join = ""
        self.boot_id = uuid4()
        self.profiles = {"shell": ["alex-shell"]}
        self.sessions: list[ReportedSession] = []
        """What it reports when it connects."""
        self.control: ControlSocket | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.control is not None:
            await self.control.close()

    def copy(self) -> FakeHost:
        """Another machine with this one's state folder."""
        copied = FakeHost(self.origin, self.url)
        copied.signing_key, copied.channel_key = self.signing_key, self.channel_key
        copied.host_id, copied.pairing_seq, copied.join = self.host_id, self.pairing_seq, self.join
        return copied

    async def pair(self, code: str) -> httpx.Response:
        """Show a pairing code; what the answer gives is kept when it is good."""
        keys = self.signing_key.public_key().public_bytes_raw(), self.channel_key.public_key().public_bytes_raw()
        signature = sign(self.signing_key, Purpose.HOST_PAIR, self.origin, code_hash(code), *keys)
        body = {"code": code, "signing_key": b64(keys[0]), "channel_key": b64(keys[1]), "signature": b64(signature)}
        async with httpx.AsyncClient(trust_env=False) as rest:
            answer = await rest.post(f"{self.url}/api/v1/hosts/pair", json=body)
        if answer.status_code == 201:
            made = answer.json()
            self.host_id, self.pairing_seq, self.join = HostId(UUID(made["host_id"])), made["pairing_seq"], made["join"]
        return answer

    async def connect(self, url: str | None = None) -> ControlSocket:
        """A control connection that identified itself and reported: the host is eligible when this returns.

        A host has one at a time: it drops the one before.
        """
        if self.control is not None:
            self.control.cut()
        return await self.connect_again(url)

    async def connect_again(self, url: str | None = None) -> ControlSocket:
        """Like :meth:`connect`, but what became of the connection before is not the host's affair."""
        control = await self.identify(url)
        identified = await control.expect(HostIdentified)
        self.join = identified.join_offered
        await control.send(self.report(*self.sessions))
        await control.handled()
        self.control = control
        return control

    async def identify(self, url: str | None = None, **changed: Any) -> ControlSocket:
        """A control connection that sent its identify; ``changed`` fields stand in it."""
        control = await ControlSocket.dial(f"{url or self.url}{CONTROL_PATH}")
        hello = await control.expect(HostHello)
        fields = {"host_id": self.host_id, "boot_id": self.boot_id, "version": PROTOCOL_VERSION, "join": self.join}
        fields |= changed
        proven = [str(each) for each in fields.values()]
        signature = sign(self.signing_key, Purpose.HOST_IDENTIFY, self.origin, hello.challenge, *proven)
        await control.send(HostIdentify(signature=signature, **fields))  # type: ignore[arg-type]
        return control

    def report(self, *sessions: ReportedSession) -> HostReport:
        """What the host offers and runs."""
        return HostReport(
            join=self.join,
            profiles=self.profiles,
            require_local_confirm=False,
            sessions=list(sessions),
            os="linux",
            arch="x86_64",
        )

    async def identify_data(
        self, session_id: SessionId, url: str | None = None, *, named: SessionId | None = None
    ) -> FakeSide:
        """Dial the data socket and prove the host, for the session or for another one; whether it is accepted is not read."""
        side = await FakeSide.dial(f"{url or self.url}{data_path(session_id)}", DATA_SUBPROTOCOL)
        hello = await side.expect(DataHello)
        named = named or session_id
        fields = (hello.challenge, str(self.host_id), str(named), str(self.pairing_seq))
        signature = sign(self.signing_key, Purpose.DATA_IDENTIFY, self.origin, *fields)
        await side.send(DataIdentify(host_id=self.host_id, session_id=named, signature=signature))
        return side

    async def dial(self, session_id: SessionId, url: str | None = None) -> FakeSide:
        """An accepted data side."""
        side = await self.identify_data(session_id, url)
        await side.expect(SideAccepted)
        return side

    async def started(self, session_id: SessionId) -> None:
        """Say that the program runs."""
        assert self.control is not None
        await self.control.send(HostSessionStarted(session_id=session_id))

    async def ended(self, session_id: SessionId, reason: Any = "process_exited") -> None:
        """Say that the session is over."""
        assert self.control is not None
        await self.control.send(HostSessionEnded(session_id=session_id, reason=reason))


class ControlSocket:
    """A control connection; frames that a test does not wait for are kept."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self._kept: list[Frame] = []

    @classmethod
    async def dial(cls, url: str) -> ControlSocket:
        """Connect; the hello is not read."""
        address = url.replace("http", "ws", 1)
        subprotocols: Any = [CONTROL_SUBPROTOCOL]
        options: dict[str, Any] = {"compression": None, "ping_interval": None, "proxy": None, "close_timeout": 1}
        return cls(await connect(address, subprotocols=subprotocols, **options))

    async def send(self, frame: Frame) -> None:
        """Send one frame."""
        await self.socket.send(encode(frame))

    async def expect(self, kind: type[F]) -> F:
        """The first frame of this kind, kept or next to come; others are kept."""
        for frame in self._kept:
            if isinstance(frame, kind):
                self._kept.remove(frame)
                return frame
        async with asyncio.timeout(PATIENCE_S):
            while True:
                received: Frame = _frames.decode(await self.socket.recv())
                if isinstance(received, kind):
                    return received
                self._kept.append(received)

    async def heartbeat(self) -> None:
        """Send a heartbeat and see it answered."""
        await self.send(HostHeartbeat())
        await self.expect(HostHeartbeatAck)

    async def handled(self) -> None:
        """Everything sent before has been handled: news of a session that nobody knows is answered in its turn."""
        session_id = uuid4()
        await self.send(HostSessionEnded(session_id=session_id, reason="idle"))
        others = []
        while (recorded := await self.expect(HostSessionRecorded)).session_id != session_id:
            others.append(recorded)
        self._kept += others

    @property
    def kept(self) -> list[Frame]:
        """Frames that came and were not waited for."""
        return list(self._kept)

    async def closed(self) -> Closed:
        """Read until the socket ends."""
        with suppress(ConnectionClosed):
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    self._kept.append(_frames.decode(await self.socket.recv()))
        return Closed(self.socket.close_code or 1006, self.socket.close_reason or "")

    def fall_silent(self) -> None:
        """Read nothing more, so that no ping is answered, as when the way to the host is broken."""
        self.socket.transport.pause_reading()

    def listen_again(self) -> None:
        """Read what came meanwhile."""
        self.socket.transport.resume_reading()

    def cut(self) -> None:
        """Lose the connection without a word."""
        self.socket.transport.abort()

    async def close(self) -> None:
        """Leave."""
        await self.socket.close()
