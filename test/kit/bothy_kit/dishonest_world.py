"""A relay as a dishonest operator holds it: a real node with its rows and signing keys, and two real hosts."""

from __future__ import annotations

import os
import pwd
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from bothy_kit.fake_device import Answer, FakeDevice, Stream
from bothy_kit.processes import scratch
from bothy_kit.programs import Program, ask
from bothy_kit.sockets import FakeSide
from bothy_kit.world_parts import administer, reserved_nodes, running_host, running_nodes, server_environment
from bothy_wire.channel import DeviceEnd, Limits
from bothy_wire.channel.device_events import DeviceEvent, Opened, Output, Refusal
from bothy_wire.frames import SidePaired
from bothy_wire.ids import HostId, SessionId

ME = pwd.getpwuid(os.geteuid()).pw_name
TTL_S = 600
"""A session token lives so long here that a replay is not refused for its age."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A host and what it tells its own log."""

    id: HostId
    name: str
    service: Program
    listed: Path
    """``authorized_devices``, or where it would be."""

    def log(self) -> str:
        """What the service tells it."""
        return self.service.log.read_text()

    def told(self, session_id: SessionId, words: str) -> bool:
        """Whether a line about the session says so."""
        return any(str(session_id) in line and words in line for line in self.log().splitlines())

    def ran(self, session_id: SessionId) -> int:
        """How often the service says that it has started a program for the session."""
        return sum(f"session {session_id}:" in line and " runs as " in line for line in self.log().splitlines())

    @property
    def started(self) -> int:
        """The same over all sessions."""
        return self.log().count(" runs as ")

    def restart(self) -> None:
        """Without a word, so that what it kept in memory is gone."""
        before = self.log().count("connected to")
        self.service.kill()
        self.service.start()
        self.service.wait(lambda: self.log().count("connected to") > before)


@dataclass(frozen=True, slots=True)
class DishonestWorld:
    """The relay as its dishonest operator holds it, and two hosts."""

    url: str
    folder: Path
    """The signing keys are in its ``keys``."""
    database: str
    server: dict[str, str]
    careful: Machine
    trusting: Machine

    def invite(self) -> str:
        """A code for one more device of Robin, who owns both hosts."""
        return str(administer(self.server, "person", "invite", "Robin")["invite"])

    @asynccontextmanager
    async def device(self) -> AsyncIterator[FakeDevice]:
        """A device of Robin, who owns both hosts, made as it should be."""
        async with FakeDevice(self.url, self.url) as device:
            assert (await device.redeem(self.invite())).status == 201
            assert (await device.login()).status == 200
            yield device

    def sql(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Any statement, committed; its rows."""
        with psycopg.connect(self.database) as connection:
            done = connection.execute(statement, values)
            return done.fetchall() if done.description else []


@contextmanager
def dishonest_world(database: str) -> Iterator[DishonestWorld]:
    """Start everything on a database at the newest migration. Raises :class:`~bothy_kit.programs.ProgramError`."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch("bothy-dishonest"))
        nodes, _ = stack.enter_context(reserved_nodes())
        url = f"http://127.0.0.1:{nodes[0].port}"
        server = server_environment(database, folder / "keys", url)
        server["BOTHY_TERMINAL__SESSION_TOKEN_TTL"] = f"{TTL_S}s"
        ask("bothy-server", ["keys", "init"], server)
        stack.enter_context(running_nodes(nodes[:1], server, folder, lambda _: None))
        administer(server, "person", "add", "Robin")

        def machine(number: int, name: str, settings: str = "") -> Machine:
            own = folder / name
            own.mkdir(0o700)
            (own / "devices").touch(0o600)
            admin = f'{settings.format(own / "devices")}\n[profile.admin]\nusers = ["{ME}", "nobody"]'
            made = administer(server, "host", "add", name, "--owner", "Robin")
            service = stack.enter_context(running_host(own, url, made["code"], admin))
            service.wait(lambda: nodes[0].gauge("bothy_hosts_connected") == number)
            return Machine(HostId(UUID(made["host_id"])), name, service, own / "devices")

        careful = machine(1, "careful", 'authorized_devices = "{}"')
        yield DishonestWorld(url, folder, database, server, careful, machine(2, "trusting"))


class Channel:
    """A device's end of a session, and what it sent first."""

    def __init__(self, device: FakeDevice, side: FakeSide, host: Machine, stream: Stream, profile: str) -> None:
        self.side = side
        self.end = DeviceEnd(
            channel_key=device.channel_key,
            host_channel_key=stream.host_channel_key,
            session_id=stream.session_id,
            host_id=host.id,
            profile=profile,
            session_user=ME,
            term="xterm",
            limits=Limits(),
        )
        self.sent: list[bytes] = []
        self._shown = b""

    async def shake_hands(self, token: str | None = None) -> str:
        """``opened``, or the code of the refusal. Without a ``token`` it is the one that the node minted."""
        paired = await self.side.expect(SidePaired)
        self.end.pair(token or paired.session_token or "", 80, 24, time.monotonic())
        await self._flush()
        while True:
            for event in await self._receive():
                match event:
                    case Refusal(code):
                        return code
                    case Opened():
                        return "opened"

    async def run(self, line: str, shows: bytes) -> None:
        """Type a line, and wait for what it prints."""
        self.end.write(line.encode() + b"\n")
        await self._flush()
        while shows not in self._shown:
            for event in await self._receive():
                if isinstance(event, Output):
                    self._shown += event.data
                    self.end.processed(len(event.data))
            await self._flush()

    async def _receive(self) -> list[DeviceEvent]:
        message = await self.side.receive()
        return self.end.receive(message, time.monotonic()) if isinstance(message, bytes) else []

    async def _flush(self) -> None:
        for message in self.end.take_outgoing():
            self.sent.append(message)
            await self.side.send(message)


@asynccontextmanager
async def attached(device: FakeDevice, host: Machine, stream: Stream, profile: str = "shell") -> AsyncIterator[Channel]:
    """A device whose stream side is accepted."""
    side = await device.dial(stream)
    try:
        yield Channel(device, side, host, stream, profile)
    finally:
        await side.close()


@asynccontextmanager
async def replayed(device: FakeDevice, stream: Stream) -> AsyncIterator[FakeSide]:
    """A paired stream side, for what was recorded elsewhere."""
    side = await device.dial(stream)
    try:
        await side.expect(SidePaired)
        yield side
    finally:
        await side.close()


def stream_of(answer: Answer) -> Stream:
    """What an open answered."""
    assert answer.status == 201, answer.body
    body = answer.body
    session_id = SessionId(UUID(body["session_id"]))
    return Stream(session_id, body["stream_token"], b64decode(body["host_channel_key"]), body["attach_seq"])
