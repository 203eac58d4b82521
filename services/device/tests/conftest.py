"""A relay with a host behind it, on real sockets, and a person at a real pseudo-terminal in front of the real program."""

import asyncio
import base64
import contextlib
import fcntl
import hashlib
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
import uuid
from pathlib import Path

import pytest
import websockets
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_device.known_hosts import KnownHosts, Pin
from bothy_device.state import Login, Logins
from bothy_wire.channel import flow, host_end
from bothy_wire.frames import (
    Decoder,
    SideAccepted,
    SidePaired,
    SideReady,
    SideUnpaired,
    StreamHello,
    StreamIdentify,
    encode,
)
from bothy_wire.signing import Purpose, fingerprint, verify

BOTHY = str(Path(sys.executable).with_name("bothy"))
PATIENCE = 20.0


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


class FakeHost:
    """The other side: :class:`HostEnd` and a program that the test plays."""

    def __init__(self, session_id, host_id, key):
        self.end = host_end.HostEnd(channel_key=key, session_id=session_id, host_id=host_id, limits=flow.Limits())
        self.typed = bytearray()
        self.sizes = []
        self.terms = []
        self.refusal = None
        self.stuck = False  # the program does not read
        self.unread = 0
        self.changed = asyncio.Condition()
        self.connection = None

    async def receive(self, message):
        now = asyncio.get_running_loop().time()
        for event in self.end.receive(message, now):
            match event:
                case host_end.Offered() if self.refusal:
                    self.end.refuse(self.refusal)
                case host_end.Offered(message1):
                    resume = "repaint" if message1.lineage and message1.lineage == self.end.lineage else "new"
                    self.end.accept(
                        resume,
                        self.end.lineage if resume == "repaint" else os.urandom(16),
                        self.end.output_position,
                        now,
                    )
                case host_end.Opened(columns, rows, term):
                    self.sizes.append((columns, rows))
                    self.terms.append(term)
                    self.end.repaint(b"\x1bc$ ")
                case host_end.Input(data):
                    self.typed += data
                    self.unread += len(data)
                    if not self.stuck:
                        self.read()
                case host_end.Resized(columns, rows):
                    self.sizes.append((columns, rows))
        await self.flush()
        async with self.changed:
            self.changed.notify_all()

    def read(self):
        self.end.written(self.unread)
        self.unread = 0

    async def flush(self):
        for message in self.end.take_outgoing():
            with contextlib.suppress(websockets.ConnectionClosed):
                await self.connection.send(message)

    async def until(self, condition):
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(condition)

    async def print(self, data):
        while data:
            await self.until(lambda: self.end.output_credit > 0)
            piece = data[: self.end.output_credit]
            self.end.output(piece, asyncio.get_running_loop().time())
            await self.flush()
            data = data[len(piece) :]

    async def quiet(self):
        """Until the window is closed and the device, which writes as much as its terminal takes, is done with it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                before = self.end.acknowledged
                await asyncio.sleep(0.2)
                if self.end.output_credit == 0 and self.end.acknowledged == before:
                    return

    async def exit(self, status):
        self.end.exit(status)
        await self.flush()

    async def notice(self, text):
        self.end.notice(text)
        await self.flush()


class FakeRelay:
    """One server, one person, one device; REST and the stream socket on one port."""

    def __init__(self):
        self.host_key = X25519PrivateKey.generate()
        self.host_id = uuid.uuid4()
        self.session_id = uuid.uuid4()
        self.device_id = uuid.uuid4()
        self.person_id = uuid.uuid4()
        self.invite = "7QK3MR1GHT"
        self.signing_key = None  # of the device
        self.hosts = [self.host_row()]
        self.devices = [self.device_row(self.device_id, "laptop"), self.device_row(uuid.uuid4(), "phone")]
        self.pairing_code = "AAAAA-BBBBB"
        self.owners, self.grants = [], []
        self.refusals = {}  # path -> (status, code, headers)
        self.losses = []  # what a device gets instead of the next answers to an open: None, or a status of an edge
        self.requests = []
        self.upgrades = []
        self.tokens = 0
        self.session_state, self.close_reason, self.close_detail = "active", None, None
        self.stream_close = None  # (code, reason) instead of accepting
        self.pairs = True
        self.mute = False  # takes connections and says nothing
        self.device_of_session = self.device_id
        self.dropping = False  # from side.unpaired to side.ready binary belongs to the old pairing
        self.readies = 0
        self.side = None
        self.closed_with = None
        self.host = FakeHost(self.session_id, self.host_id, self.host_key)
        self.transports = set()
        self.pinged = self.accepted = 0
        self._event = asyncio.Event()

    @property
    def host_public(self):
        return self.host_key.public_key().public_bytes_raw()

    def host_row(self, **other):
        return {
            "host_id": str(self.host_id),
            "name": "lab-1",
            "state": "active",
            "disabled_reason": None,
            "presence": "online",
            "profiles": {"shell": ["alex"]},
            "channel_key": b64(self.host_public),
            "fingerprint": fingerprint(self.host_public),
            "owner": False,
            "session_users": ["alex"],
            "last_seen_at": None,
        } | other

    def device_row(self, device_id, name, **other):
        return {
            "device_id": str(device_id),
            "person_id": str(self.person_id),
            "name": name,
            "kind": "cli",
            "added_by": "invite",
            "fingerprint": fingerprint(self.host_public),
            "created_at": "2026-01-02T03:04:05Z",
            "last_used_at": None,
            "revoked_at": None,
        } | other

    async def __aenter__(self):
        self._sockets = await websockets.serve(
            self._stream, "127.0.0.1", 0, subprotocols=["bothy.stream.v1"], compression=None, ping_interval=None
        )
        self._inner = self._sockets.sockets[0].getsockname()[1]
        self._front = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.origin = f"http://127.0.0.1:{self._front.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._front.close()
        self.cut()
        self._sockets.close()
        await self._sockets.wait_closed()

    def cut(self):
        """Every connection is gone without a word."""
        for transport in self.transports:
            transport.abort()

    def half_close(self):
        """We say no more, and would still listen."""
        for transport in self.transports:
            transport.write_eof()

    def go_away(self):
        """Nobody listens any more, and everything that was is gone."""
        self._front.close()
        self.cut()

    async def come_back(self):
        """At the same address."""
        port = int(self.origin.rpartition(":")[2])
        self._front = await asyncio.start_server(self._accept, "127.0.0.1", port)

    async def pings(self, count):
        """Until the device asked so often whether we are there."""
        wanted = self.pinged + count
        await self._until(lambda: self.pinged >= wanted)

    async def until_upgrades(self, count):
        """Until so many connections were tried."""
        await self._until(lambda: len(self.upgrades) >= count)

    async def until_asked(self, method, path, count=1):
        """Until so many requests like that came."""
        await self._until(lambda: len(self.requests_of(method, path)) >= count)

    async def until_dialled(self, count):
        """Until so many connections were accepted, of which the last is the side."""
        await self._until(lambda: self.accepted >= count)

    def requests_of(self, method, path):
        """The requests whose path ends like that."""
        return [each for each in self.requests if each[0] == method and each[1].endswith(path)]

    def _happened(self):
        self._event.set()

    async def _until(self, condition):
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    self._event.clear()
                    await self._event.wait()
        except TimeoutError:
            pytest.fail(f"{len(self.upgrades)} dialled, {self.accepted} accepted, {self.pinged} pings")

    def freeze(self):
        """Every connection stays and nothing passes."""
        for transport in self.transports:
            transport.pause_reading()

    # ---- one port for both

    async def _accept(self, reader, writer):
        self.transports.add(writer.transport)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    if b"upgrade: websocket" in head.lower():
                        self.upgrades.append(head)
                        self._happened()
                        if self.mute:
                            await reader.read()
                            return
                        await self._splice(head, reader, writer)
                        return
                    await self._answer(head, reader, writer)
        finally:
            self.transports.discard(writer.transport)
            writer.close()

    async def _splice(self, head, reader, writer):
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._inner)
        inner_writer.write(head)

        async def copy(source, target):
            with contextlib.suppress(ConnectionError):
                while data := await source.read(65536):
                    if source is reader and data[0] == 0x89:  # a frame of a person who types nothing stands alone
                        self.pinged += 1
                        self._happened()
                    target.write(data)
                    await target.drain()
            target.close()

        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

    async def _answer(self, head, reader, writer):
        first, *lines = head.decode().split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        body = json.loads(raw) if raw else None
        path = target.removeprefix("/api/v1")
        self.requests.append((method, path, body, headers))
        self._happened()
        if self.mute:
            await reader.read()
            return
        status, answer, extra = self._rest(method, path, body, headers)
        if path == "/terminal/sessions" and self.losses:
            status, answer = self.losses.pop(0), b"<html>an edge</html>"
            if status is None:
                writer.close()
                return
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in extra.items())
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n{more}\r\n".encode() + content)
        await writer.drain()

    # ---- REST

    def _rest(self, method, path, body, headers):
        if path in self.refusals:
            status, code, extra = self.refusals[path]
            return (
                status,
                code if isinstance(code, bytes) else {"code": code, "status": status, "detail": "told"},
                extra,
            )
        problem = lambda status, code: (status, {"code": code, "status": status, "detail": "told"}, {})  # noqa: E731
        if path == "/auth/invites/redeem":
            keys = [base64.b64decode(body[name]) for name in ("signing_key", "channel_key")]
            fields = (hashlib.sha256(body["code"].encode()).digest(), *keys, body["name"])
            good = self._signed(keys[0], body, Purpose.INVITE_REDEEM, *fields)
            if not good or body["code"] != self.invite:
                return problem(401, "invite_invalid")
            self.signing_key = keys[0]
            return 201, {"device_id": str(self.device_id), "person_id": str(self.person_id), "person_name": "Alex"}, {}
        challenge = b"c" * 32
        if path == "/auth/challenge":
            return 200, {"challenge": b64(challenge), "expires_in_s": 60}, {}
        if path == "/auth/token":
            if not self._signed(self.signing_key, body, Purpose.DEVICE_LOGIN, challenge, body["device_id"]):
                return problem(401, "login_refused")
            self.tokens += 1
            return 200, {"access_token": f"access-{self.tokens}", "expires_in_s": 600}, {}
        if headers.get("authorization") != f"Bearer access-{self.tokens}":
            return problem(401, "token_invalid")
        if (method, path) == ("GET", "/hosts"):
            return 200, {"hosts": self.hosts}, {}
        if path.startswith("/hosts") and (answer := self._managed(method, path, body)) is not None:
            return answer
        if path == "/devices":
            return 200, {"devices": self.devices}, {}
        if path == "/devices/invites":
            return 201, {"name": "Alex", "invite": "AAAAA-BBBBB", "expires_in_s": 86400, "code": None}, {}
        if path == "/auth/logout" or (path.startswith("/devices/") and path.endswith("/revoke")):
            device_id = str(self.device_id) if path == "/auth/logout" else path.split("/")[2]
            (revoked,) = [each for each in self.devices if each["device_id"] == device_id]
            revoked["revoked_at"] = "2026-01-02T03:04:05Z"
            return 200, revoked, {}
        if path.endswith("/confirm"):
            if body["fingerprint"] != fingerprint(self.host_public):
                return problem(409, "fingerprint_mismatch")
            self.hosts[0]["state"] = "active"
            return 200, self.hosts[0], {}
        if path == "/step-up/challenges":
            self.wanted = body
            return 201, {"challenge": b64(challenge), "expires_in_s": 60}, {}
        if path == "/step-up":
            fields = [self.wanted.get(name, "") for name in ("purpose", "host_id", "profile", "session_user")]
            good = self._signed(self.signing_key, body, Purpose.DEVICE_STEP_UP, challenge, str(self.device_id), *fields)
            return (
                (201, {"step_up_id": str(uuid.uuid4()), "expires_in_s": 60}, {})
                if good
                else problem(401, "login_refused")
            )
        if method == "POST" and (path == "/terminal/sessions" or path.endswith("/attach")):
            return 201, self._opened(), {}
        if path.startswith(("/terminal/sessions?", f"/hosts/{self.host_id}/sessions?")):
            return 200, {"sessions": [self._row()]}, {}
        if path.endswith("/close"):
            self.session_state, self.close_reason = "closed", "client_closed"
        if path.endswith("/terminate"):
            self.session_state, self.close_reason = "closed", "closed_by_owner"
        return 200, self._row(), {}

    def _managed(self, method, path, body):
        """What owners and operators do about hosts."""
        host = next((each for each in self.hosts if path.startswith(f"/hosts/{each['host_id']}/")), None)
        since = "2026-01-02T03:04:05Z"
        who = {"person_id": str(self.person_id), "since": since}
        match method, path.split("/")[2 if host is None else 3 :]:
            case "POST", []:
                made = self.host_row(host_id=str(uuid.uuid4()), name=body["name"], state="pending", fingerprint=None)
                self.hosts.append(made)
                return 201, made, {}
            case "POST", ["pairing-codes"]:
                return 201, {"code": self.pairing_code, "expires_in_s": 900}, {}
            case "POST", ["state"]:
                host["state"] = body["state"]
                return 200, host, {}
            case "POST", ["rename"]:
                host["name"] = body["name"]
                return 200, host, {}
            case "GET", ["owners"]:
                return 200, {"owners": self.owners}, {}
            case "POST", ["owners"]:
                self.owners.append({"person_name": body["person"], "disabled": True} | who)
                return 200, self.owners[-1], {}
            case "GET", ["grants"]:
                return 200, {"grants": self.grants}, {}
            case "POST", ["grants"]:
                given = {name: body[name] for name in ("session_user", "expires_at")}
                self.grants.append({"person_name": body["person"]} | who | given)
                return 200, self.grants[-1], {}
            case "POST", [("owners" | "grants") as kind, ("remove" | "revoke")]:
                left = [each for each in getattr(self, kind) if each["person_name"] != body["person"]]
                setattr(self, kind, left)
                return 200, {}, {}
        return None

    def _signed(self, key, body, *fields):
        purpose, *rest = fields
        return verify(key, base64.b64decode(body["signature"]), purpose, self.origin, *rest)

    def _opened(self):
        return {
            "session_id": str(self.session_id),
            "host_id": str(self.host_id),
            "profile": "shell",
            "session_user": "alex",
            "stream_path": f"/api/v1/terminal/sessions/{self.session_id}/stream",
            "stream_token": "stream-token",
            "host_channel_key": b64(self.host_public),
            "expires_in_s": 60,
            "attach_seq": 1,
        }

    def _row(self):
        return {
            "session_id": str(self.session_id),
            "host_id": str(self.host_id),
            "host_name": "lab-1",
            "person_id": str(self.person_id),
            "person_name": "Alex",
            "device_id": str(self.device_of_session),
            "device_name": "laptop",
            "profile": "shell",
            "session_user": "alex",
            "state": self.session_state,
            "close_reason": self.close_reason,
            "close_detail": self.close_detail,
            "opened_at": "2026-01-02T03:04:05Z",
            "started_at": None,
            "detached_at": None,
            "closed_at": None,
            "expires_at": "2026-01-03T03:04:05Z",
        }

    # ---- the stream socket

    async def _stream(self, connection):
        challenge = b"s" * 32
        await connection.send(encode(StreamHello(challenge=challenge)))
        frame = Decoder(StreamIdentify).decode(await connection.recv())
        fields = (challenge, str(self.session_id), hashlib.sha256(b"stream-token").digest())
        assert verify(self.signing_key, frame.signature, Purpose.STREAM_IDENTIFY, self.origin, *fields)
        if self.stream_close:
            await connection.close(*self.stream_close)
            return
        await connection.send(encode(SideAccepted()))
        self.side = self.host.connection = connection
        self.accepted += 1
        self._happened()
        if self.pairs:
            await self.pair()
        with contextlib.suppress(websockets.ConnectionClosed):
            async for item in connection:
                if isinstance(item, bytes):
                    if not self.dropping:
                        await self.host.receive(item)
                else:
                    Decoder(SideReady).decode(item)
                    self.dropping = False
                    self.readies += 1
                    async with self.host.changed:
                        self.host.changed.notify_all()
        self.closed_with = connection.close_code
        async with self.host.changed:
            self.host.changed.notify_all()

    async def pair(self):
        self.host.end.paired(asyncio.get_running_loop().time())
        await self.side.send(encode(SidePaired(session_token="session-token")))

    async def unpair(self):
        self.host.end.unpaired()
        self.dropping = True
        await self.side.send(encode(SideUnpaired()))


class Person:
    """At a pseudo-terminal, in front of ``bothy``."""

    def __init__(self, *arguments, home, columns=80, rows=24, environment=None, program=BOTHY):
        self.screen = bytearray()
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows, tell=False)
        self.before = termios.tcgetattr(self.slave)
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(self.master, False)
        self.look()
        self.process = subprocess.Popen(
            [program, *arguments],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=environ(home) | (environment or {}),
            preexec_fn=_take_terminal,  # noqa: PLW1509 - two system calls, no lock of a thread is touched
        )

    def look(self):
        self._loop.add_reader(self.master, self._read)

    def look_away(self):
        self._loop.remove_reader(self.master)

    def _read(self):
        with contextlib.suppress(BlockingIOError, OSError):
            self.screen += os.read(self.master, 65536)
        self._changed.set()

    async def until(self, text, *, start=0):
        try:
            async with asyncio.timeout(PATIENCE):
                while text not in self.screen[start:]:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pytest.fail(f"{text!r} did not come; on the screen: {bytes(self.screen[-2000:])!r}")

    async def type(self, data):
        view = memoryview(data)
        async with asyncio.timeout(PATIENCE):
            while view:
                try:
                    view = view[os.write(self.master, view) :]
                except BlockingIOError:
                    await asyncio.sleep(0.001)

    def resize(self, columns, rows, *, tell=True):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def child(self):
        """The process that the person's shell started."""
        (number,) = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(number)

    def raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    async def until_raw(self):
        """There is nothing to wait for but the settings themselves."""

        def look():
            while not self.raw():
                time.sleep(0.01)

        async with asyncio.timeout(PATIENCE):
            await asyncio.to_thread(look)

    async def stopped(self):
        await asyncio.to_thread(os.waitid, os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    async def ended(self):
        """The exit status, with everything on the screen."""
        async with asyncio.timeout(PATIENCE):
            status = await asyncio.to_thread(self.process.wait, PATIENCE)
        self._read()
        return status

    def settings(self):
        return termios.tcgetattr(self.slave)

    def text(self):
        return self.screen.decode(errors="replace")

    def close(self):
        self.look_away()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def _take_terminal():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def environ(home):
    names = ("PATH", "LANG", "SSL_CERT_FILE", "COVERAGE_PROCESS_CONFIG")
    kept = {name: value for name, value in os.environ.items() if name in names}
    return kept | {"BOTHY_HOME": str(home), "TERM": "xterm-256color", "NO_PROXY": "*"}


@pytest.fixture
async def relay():
    async with FakeRelay() as fake:
        yield fake


@pytest.fixture
def home(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def login(relay, home):
    """This device is logged in at the relay."""
    signer = Ed25519PrivateKey.generate()
    relay.signing_key = signer.public_key().public_bytes_raw()
    made = Login(
        server=relay.origin,
        device_id=relay.device_id,
        device_name="laptop",
        person_name="Alex",
        signing_key=signer.private_bytes_raw(),
        channel_key=X25519PrivateKey.generate().private_bytes_raw(),
    )
    Logins(home).store(made)
    return made


@pytest.fixture
def sit(login, home, relay):
    """A person sits down, who was here before: ``sit("open", "lab-1")``."""
    KnownHosts(home / "known_hosts").trust(Pin(relay.origin, relay.host_id, fingerprint(relay.host_public), "lab-1"))
    persons = []

    def start(*arguments, **options):
        persons.append(Person(*arguments, home=home, **options))
        return persons[-1]

    yield start
    for person in persons:
        person.close()


@pytest.fixture
def bothy(home):
    """Run the program without a terminal: status, standard output, standard error."""

    async def call(*arguments, stdin=b"", environment=None):
        process = await asyncio.create_subprocess_exec(
            BOTHY,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environ(home) | (environment or {}),
        )
        try:
            async with asyncio.timeout(PATIENCE):
                out, err = await process.communicate(stdin)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        return process.returncode, out, err.decode()

    return call
