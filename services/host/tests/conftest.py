"""A small server on a real socket that speaks the real frames, and a device that sits behind it."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import pwd
import secrets
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from joserfc import jwt
from joserfc.jwk import OKPKey
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from bothy_host.control import Control
from bothy_host.host import Host
from bothy_host.screen import MakeScreen
from bothy_host.session_screen import SessionScreen
from bothy_host.sessions import Sessions
from bothy_host.settings import Settings, parse
from bothy_host.state import Pairing, State, save
from bothy_host.tokens import TokenDesk
from bothy_wire import frames, limits
from bothy_wire.channel import DeviceEnd
from bothy_wire.channel import Limits as ChannelLimits
from bothy_wire.channel.device_events import Exited, Notice, Opened, Output, Refusal, Repaint
from bothy_wire.signing import Purpose, thumbprint, verify

PATIENCE = 20.0
"""Seconds after which something that must happen is said not to."""
ME = pwd.getpwuid(os.geteuid()).pw_name


class Changes:
    """Lets a test wait for a condition without sleeping for it."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def change(self) -> None:
        self._changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


async def _eventually(condition: Callable[[], object]) -> None:
    """For what no event tells: processes and files."""
    async with asyncio.timeout(PATIENCE):
        for _ in itertools.count():
            if condition():
                return
            await asyncio.sleep(0.01)


class FakeServer:
    """Knows one host. Everything that it hears is kept; everything that it says is the test's decision."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.signing = OKPKey.generate_key("Ed25519", auto_kid=True)
        self.published = [self.signing]
        self.jwks_reads = 0
        self.signing_public = b""
        self.host_id = uuid.uuid4()
        self.pairing_seq = 1
        self.audience = ""
        self.pending = False
        self.refuse_control: int | None = None
        self.refuse_data: list[int] = []
        self.answer_heartbeats = True
        self.protocol = (1, 1)
        self.heartbeat = 0.1
        self.miss_limit = 100  # a machine that is slow is no relay that is silent
        self.limits = frames.HostLimits(idle_timeout_s=600, idle_grace_s=60, detach_grace_s=600, max_duration_s=3600)
        self.identified: list[frames.HostIdentify] = []
        self.heard: list[frames.Frame] = []
        self.controls: list[ServerConnection] = []
        self.open_controls = 0
        self.most_controls = 0
        self.sides: list[FakeSide] = []
        self.join = 100

    # ---- REST

    def request(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path != "/.well-known/jwks.json":
            return None
        self.jwks_reads += 1
        return connection.respond(200, json.dumps(self.jwks()))

    def jwks(self) -> dict:
        return {"keys": [key.as_dict(private=False) for key in self.published]}

    # ---- sockets

    async def handle(self, connection: ServerConnection) -> None:
        try:
            if connection.request.path == limits.CONTROL_PATH:
                await self._control(connection)
            else:
                await self._data(connection)
        except ConnectionClosed:
            pass
        finally:
            self.changes.change()

    async def _control(self, connection: ServerConnection) -> None:
        assert connection.subprotocol == limits.CONTROL_SUBPROTOCOL
        challenge = secrets.token_bytes(32)
        await connection.send(
            frames.encode(
                frames.HostHello(
                    challenge=challenge,
                    jwks=self.jwks(),
                    heartbeat_interval_s=self.heartbeat,
                    miss_limit=self.miss_limit,
                    server_time=time.time(),
                    protocol_min=self.protocol[0],
                    protocol_max=self.protocol[1],
                )
            )
        )
        identify = frames.Decoder(frames.HostIdentify).decode(await connection.recv())
        fields = (challenge, str(identify.host_id), str(identify.boot_id), str(identify.version), identify.join)
        assert verify(self.signing_public, identify.signature, Purpose.HOST_IDENTIFY, self.audience, *fields)
        self.identified.append(identify)
        if self.refuse_control is not None:
            await connection.close(self.refuse_control)
            return
        self.controls.append(connection)
        self.open_controls += 1
        self.most_controls = max(self.most_controls, self.open_controls)
        try:
            if self.pending:
                await connection.send(frames.encode(frames.HostPending()))
            else:
                await self.confirm()
            async for text in connection:
                frame = frames.Decoder(frames.HostControl).decode(text)
                self.heard.append(frame)
                self.changes.change()
                if isinstance(frame, frames.HostHeartbeat) and self.answer_heartbeats:
                    await connection.send(frames.encode(frames.HostHeartbeatAck(server_time=time.time())))
        finally:
            self.open_controls -= 1

    async def confirm(self) -> None:
        self.join += 1
        await self.say(
            frames.HostIdentified(
                conn_id=uuid.uuid4(), pairing_seq=self.pairing_seq, join_offered=str(self.join), limits=self.limits
            )
        )

    async def _data(self, connection: ServerConnection) -> None:
        assert connection.subprotocol == limits.DATA_SUBPROTOCOL
        challenge = secrets.token_bytes(32)
        await connection.send(frames.encode(frames.DataHello(challenge=challenge)))
        identify = frames.Decoder(frames.DataIdentify).decode(await connection.recv())
        assert connection.request.path == limits.data_path(identify.session_id)
        fields = (challenge, str(identify.host_id), str(identify.session_id), str(self.pairing_seq))
        assert verify(self.signing_public, identify.signature, Purpose.DATA_IDENTIFY, self.audience, *fields)
        if self.refuse_data:
            await connection.close(self.refuse_data.pop(0))
            return
        await connection.send(frames.encode(frames.SideAccepted()))
        side = FakeSide(connection)
        self.sides.append(side)
        self.changes.change()
        await side.read()

    # ---- words of the test

    async def say(self, frame: frames.Frame) -> None:
        await self.controls[-1].send(frames.encode(frame))

    async def order(self, session_id: uuid.UUID, profile: str = "shell", user: str = ME) -> None:
        await self.say(
            frames.HostSessionOpen(
                session_id=session_id,
                data_path=limits.data_path(session_id),
                profile=profile,
                session_user=user,
                expires_at=time.time() + 3600,
            )
        )

    async def reported(self) -> frames.HostReport:
        await self.changes.until(lambda: self.all_heard(frames.HostReport))
        return self.all_heard(frames.HostReport)[-1]

    async def hears(self, kind: type, **fields: object) -> frames.Frame:
        def found() -> list:
            return [f for f in self.all_heard(kind) if all(getattr(f, k) == v for k, v in fields.items())]

        await self.changes.until(found)
        return found()[-1]

    def all_heard(self, kind: type) -> list:
        return [frame for frame in self.heard if isinstance(frame, kind)]

    async def side(self, count: int = 1) -> FakeSide:
        await self.changes.until(lambda: len(self.sides) >= count)
        return self.sides[count - 1]

    def token(self, session_id: uuid.UUID, device_key: bytes, signer: OKPKey | None = None, **changed: object) -> str:
        now, signer = int(time.time()), signer or self.signing
        header = {"alg": "Ed25519", "typ": changed.pop("typ", "bothy-session+jwt"), "kid": signer.kid}
        claims = {
            "iss": "bothy",
            "aud": "host",
            "sub": str(session_id),
            "host": str(self.host_id),
            "device": str(uuid.uuid4()),
            "jti": secrets.token_hex(8),
            "iat": now,
            "nbf": now,
            "exp": now + 60,
            "profile": "shell",
            "session_user": ME,
            "cnf": {"jkt": thumbprint(device_key)},
        } | changed
        return jwt.encode(header, claims, signer, algorithms=["Ed25519"])


class FakeSide:
    """One data connection, seen from the node."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.device: FakeDevice | None = None
        self.ready = 1
        self.closed: int | None = None
        self.changes = Changes()

    async def read(self) -> None:
        try:
            async for message in self.connection:
                if isinstance(message, bytes):
                    if self.device is not None:
                        await self.device.receive(message)
                else:
                    frames.Decoder(frames.SideReady).decode(message)
                    self.ready += 1
                self.changes.change()
        finally:
            self.closed = self.connection.close_code
            self.changes.change()

    async def leave(self) -> None:
        """The device goes: unpaired, answered by exactly one ready."""
        device, self.device = self.device, None
        if device is not None:
            device.gone()
        ready = self.ready
        await self.connection.send(frames.encode(frames.SideUnpaired()))
        await self.changes.until(lambda: self.ready > ready)

    async def until_closed(self) -> int | None:
        await self.changes.until(lambda: self.connection.close_code is not None)
        return self.connection.close_code


class FakeDevice:
    """A device whose terminal takes everything at once, unless ``greedy`` is false."""

    def __init__(
        self,
        server: FakeServer,
        host_key: bytes,
        session_id: uuid.UUID,
        key: X25519PrivateKey | None = None,
        **changed: object,
    ) -> None:
        self.server = server
        self.session_id = session_id
        self.key = key or X25519PrivateKey.generate()
        self.public = self.key.public_key().public_bytes_raw()
        self.end = DeviceEnd(
            channel_key=self.key,
            host_channel_key=host_key,
            session_id=session_id,
            host_id=server.host_id,
            profile=str(changed.get("profile", "shell")),
            session_user=str(changed.get("user", ME)),
            term=str(changed.get("term", "xterm-256color")),
            limits=ChannelLimits(),
        )
        self.changes = Changes()
        self.greedy = True
        self.side: FakeSide | None = None
        self.opened: list[Opened] = []
        self.refused: str | None = None
        self.output = bytearray()
        self.repaint = bytearray()
        self.repainted = 0
        self.notices: list[str] = []
        self.exit_status: int | None = None

    async def attach(self, side: FakeSide, *, size: tuple[int, int] = (80, 24), token: str | None = None) -> None:
        """Pair and start the handshake."""
        self.side, side.device = side, self
        await side.connection.send(frames.encode(frames.SidePaired()))
        self.end.pair(token or self.server.token(self.session_id, self.public), *size, time.monotonic())
        await self.flush()

    async def open(self, side: FakeSide, *, size: tuple[int, int] = (80, 24)) -> None:
        """Pair and wait until the channel is open."""
        count = len(self.opened)
        await self.attach(side, size=size)
        await self.changes.until(lambda: len(self.opened) > count)

    async def receive(self, message: bytes) -> None:
        for event in self.end.receive(message, time.monotonic()):
            match event:
                case Opened():
                    self.opened.append(event)
                case Refusal(code):
                    self.refused = code
                case Output(data):
                    self.output += data
                    if self.greedy:
                        self.end.processed(len(data))
                case Repaint(data, last):
                    self.repaint += data
                    self.repainted += last
                case Exited(status):
                    self.exit_status = status
                    if self.greedy:
                        self.end.processed(1)
                        self.end.flush()
                case Notice(text):
                    self.notices.append(text)
                case _:
                    pass
        await self.flush()
        self.changes.change()

    async def flush(self) -> None:
        for message in self.end.take_outgoing():
            if self.side is not None:
                await self.side.connection.send(message)

    def gone(self) -> None:
        self.side = None
        self.end.unpaired()

    async def type(self, data: bytes) -> None:
        self.end.write(data)
        await self.flush()

    async def process(self, count: int) -> None:
        self.end.processed(count)
        self.end.flush()
        await self.flush()

    async def resize(self, columns: int, rows: int) -> None:
        self.end.resize(columns, rows)
        await self.flush()

    async def shows(self, text: bytes) -> None:
        await self.changes.until(lambda: text in self.output)

    async def exits(self) -> int:
        await self.changes.until(lambda: self.exit_status is not None)
        assert self.exit_status is not None
        return self.exit_status


class Machine:
    """A host under test: server, settings, state and the running control connection."""

    def __init__(self, server: FakeServer, folder: Path, text: str, make_screen: MakeScreen) -> None:
        self.server = server
        self.folder = folder
        self.settings: Settings = parse(text, "test")
        signing, channel = Ed25519PrivateKey.generate(), X25519PrivateKey.generate()
        server.signing_public = signing.public_key().public_bytes_raw()
        self.channel_public = channel.public_key().public_bytes_raw()
        self.state = State(
            audience=server.audience,
            host_id=server.host_id,
            name="lab-1",
            pairing_seq=1,
            join="100",
            signing_key=signing.private_bytes_raw(),
            channel_key=channel.private_bytes_raw(),
        )
        save(folder, self.state)
        self.host = Host(
            self.settings,
            Pairing(folder, self.state),
            TokenDesk(host_id=server.host_id, leeway=5, fetch_interval=60, retry_interval=5, fetch=self._fetch),
            ssl.create_default_context(),
            make_screen,
        )
        self.sessions = Sessions(self.host)
        self.control = Control(self.host, self.sessions)

    async def _fetch(self) -> dict:
        self.server.jwks_reads += 1
        return self.server.jwks()

    async def session(
        self, profile: str = "shell", *, key: X25519PrivateKey | None = None, **changed: object
    ) -> tuple[FakeDevice, FakeSide]:
        """Order a session and wait for its data connection. ``key`` is that of a device that was here before."""
        session_id, count = uuid.uuid4(), len(self.server.sides)
        await self.server.order(session_id, profile)
        side = await self.server.side(count + 1)
        return FakeDevice(self.server, self.channel_public, session_id, key, profile=profile, **changed), side


SETTINGS = f"""
allow_root = true
[host]
backoff_cap = 0.2
hup_grace = 0.5
close_linger = 0.2
close_timeout = 0.5
[profile.shell]
command = ["/bin/bash", "--norc", "--noprofile"]
env = {{ PS1 = "$ ", HISTFILE = "" }}
users = ["{ME}"]
"""


@asynccontextmanager
async def _served() -> AsyncIterator[FakeServer]:
    server = FakeServer()
    async with serve(
        server.handle,
        "127.0.0.1",
        0,
        subprotocols=[limits.CONTROL_SUBPROTOCOL, limits.DATA_SUBPROTOCOL],
        process_request=server.request,
        compression=None,
        ping_interval=None,
        close_timeout=0.5,
    ) as listener:
        server.audience = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        yield server


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with _served() as server:
        yield server


@pytest.fixture
def make_screen() -> MakeScreen:
    """Screens without an emulator; whoever tests one starts its process."""
    return lambda limit: SessionScreen(None, limit, PATIENCE)


@pytest.fixture
def base_settings() -> str:
    return SETTINGS


@pytest.fixture
def eventually() -> Callable:
    return _eventually


@pytest.fixture
def emulators() -> Callable[[], list[int]]:
    """The emulator's processes of this process, by their numbers."""

    def found() -> list[int]:
        children = (
            int(each) for task in Path("/proc/self/task").iterdir() for each in (task / "children").read_text().split()
        )
        return [
            each for each in children if b"bothy_host.emulator_process" in Path(f"/proc/{each}/cmdline").read_bytes()
        ]

    return found


@pytest.fixture
def private(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
async def prepared(server: FakeServer, private: Path, make_screen: MakeScreen) -> Machine:
    """A paired host whose service the test starts itself."""
    return Machine(server, private, SETTINGS, make_screen)


@pytest.fixture
async def start(server: FakeServer, private: Path, make_screen: MakeScreen) -> AsyncIterator[Callable]:
    """Start a host with some settings and wait for its report."""
    started: list[tuple[Machine, asyncio.Task]] = []

    async def begin(text: str = SETTINGS, *, report: bool = True) -> Machine:
        machine = Machine(server, private, text, make_screen)
        started.append((machine, asyncio.create_task(machine.control.run())))
        if report:
            await server.reported()
        return machine

    yield begin
    for machine, task in started:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await machine.sessions.stop()
