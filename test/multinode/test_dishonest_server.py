"""A dishonest server opens nothing on a host that lists its devices.

Whoever plays it holds what the relay holds: every row, the signing keys, and the way of all bytes. The node, the hosts with
their terminals and ``bothy`` are the real programs. One host has ``authorized_devices``, the other one has not: it shows that
each attempt is good enough where the server's word is all there is.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import secrets
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from joserfc import jwt
from joserfc.jwk import OKPKey

from bothy_kit.demo_check import on_terminal
from bothy_kit.eventually import eventually
from bothy_kit.fake_device import Answer, FakeDevice, Stream
from bothy_kit.processes import scratch
from bothy_kit.programs import Program, ask, command
from bothy_kit.sockets import FakeSide
from bothy_kit.world_parts import (
    administer,
    log_in,
    reserved_nodes,
    running_host,
    running_nodes,
    server_environment,
)
from bothy_server.identity.adapters.keystore.store import load_keys
from bothy_server.kernel.ids import new_id
from bothy_wire.channel import DeviceEnd, Limits
from bothy_wire.channel.device_events import DeviceEvent, Opened, Output, Refusal
from bothy_wire.frames import SidePaired
from bothy_wire.ids import DeviceId, HostId, SessionId
from bothy_wire.signing import fingerprint, thumbprint

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
        return self.service.log.read_text()

    def told(self, session_id: SessionId, words: str) -> bool:
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
class Stage:
    """The relay as its dishonest operator holds it, and two hosts."""

    url: str
    folder: Path
    database: str
    server: dict[str, str]
    careful: Machine
    trusting: Machine

    def invite(self) -> str:
        return str(administer(self.server, "person", "invite", "Robin")["invite"])

    @asynccontextmanager
    async def device(self) -> AsyncIterator[FakeDevice]:
        """A device of Robin, who owns both hosts, made as it should be."""
        async with FakeDevice(self.url, self.url) as device:
            assert (await device.redeem(self.invite())).status == 201
            assert (await device.login()).status == 200
            yield device

    def sql(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database) as connection:
            done = connection.execute(statement, values)
            return done.fetchall() if done.description else []


@pytest.fixture(scope="module")
def stage(shared_database_url: str) -> Iterator[Stage]:
    with ExitStack() as stack:
        folder = stack.enter_context(scratch("bothy-dishonest"))
        nodes, _ = stack.enter_context(reserved_nodes())
        url = f"http://127.0.0.1:{nodes[0].port}"
        server = server_environment(shared_database_url, folder / "keys", url)
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
        yield Stage(url, folder, shared_database_url, server, careful, machine(2, "trusting"))


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


class Intruder:
    """The dishonest operator: makes devices, rights, sessions and tokens, as nobody asked for."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._key = load_keys(stage.folder / "keys")[-1]

    def device(self, host: Machine) -> FakeDevice:
        """A device of its own making, whose person owns the host."""
        device, person_id = FakeDevice(self._stage.url, self._stage.url), new_id(datetime.now(UTC))
        device.device_id = DeviceId(new_id(datetime.now(UTC)))
        keys = device.signing_key.public_key().public_bytes_raw(), device.channel_key.public_key().public_bytes_raw()
        values = {"person": person_id, "device": device.device_id, "host": host.id, "name": f"ghost {person_id}"[-40:]}
        self._stage.sql("INSERT INTO persons (id, name) VALUES (%(person)s, %(name)s)", **values)
        self._stage.sql(
            "INSERT INTO devices (id, person_id, name, kind, signing_key, channel_key)"
            " VALUES (%(device)s, %(person)s, 'ghost', 'cli', %(signing)s, %(channel)s)",
            **values,
            signing=keys[0],
            channel=keys[1],
        )
        self._stage.sql("INSERT INTO host_owners (host_id, person_id) VALUES (%(host)s, %(person)s)", **values)
        device.access_token = self._minted("access", "api", sub=str(person_id), device=str(device.device_id))
        return device

    async def opens_by_the_api(self, device: FakeDevice, host: Machine, profile: str = "shell") -> Stream:
        """The node itself opens the session: the step-up that it asks for is a row."""
        step_up_id = new_id(datetime.now(UTC))
        self._stage.sql(
            'INSERT INTO step_ups (id, person_id, device_id, purpose, host_id, profile, "session_user", expires_at)'
            " SELECT %(id)s, person_id, id, 'open', %(host)s, %(profile)s, %(user)s, now() + interval '1 hour'"
            " FROM devices WHERE id = %(device)s",
            id=step_up_id,
            device=device.device_id,
            host=host.id,
            profile=profile,
            user=ME,
        )
        body = {"host_id": str(host.id), "profile": profile, "session_user": ME, "step_up_id": str(step_up_id)}
        return stream_of(await device.rest("POST", "/terminal/sessions", body))

    async def opens_by_rows(self, device: FakeDevice, host: Machine, profile: str = "shell") -> Stream:
        """No operation is called: the session is a row, the order to the host a signal, the stream token its own."""
        session_id = SessionId(new_id(datetime.now(UTC)))
        self._stage.sql(
            'INSERT INTO terminal_sessions (id, host_id, person_id, device_id, profile, "session_user", expires_at)'
            " SELECT %(id)s, %(host)s, person_id, id, %(profile)s, %(user)s, now() + interval '1 hour'"
            " FROM devices WHERE id = %(device)s",
            id=session_id,
            device=device.device_id,
            host=host.id,
            profile=profile,
            user=ME,
        )
        self.orders(host, session_id)
        return self.stream(device, host, session_id)

    def orders(self, host: Machine, session_id: SessionId) -> None:
        """Make the node send ``host.session.open``."""
        signal = {"kind": "terminal.session_open", "host_id": str(host.id), "session_id": str(session_id)}
        self._stage.sql("SELECT pg_notify('ephemeral', %(signal)s)", signal=json.dumps(signal, separators=(",", ":")))

    def takes(self, device: FakeDevice, host: Machine, session_id: SessionId) -> None:
        """Let a session be another device's."""
        self._stage.sql(
            "UPDATE terminal_sessions s SET device_id = d.id, person_id = d.person_id, attach_seq = attach_seq + 1"
            " FROM devices d WHERE d.id = %(device)s AND s.id = %(session)s",
            device=device.device_id,
            session=session_id,
        )
        self.orders(host, session_id)

    def begins_again(self, host: Machine, session_id: SessionId) -> None:
        """Let a session that is over be one that never met."""
        self._stage.sql(
            "UPDATE terminal_sessions SET state = 'opening', close_reason = NULL, close_detail = NULL, closed_at = NULL,"
            " paired_at = NULL, started_at = NULL, detached_at = NULL, boot_id = NULL WHERE id = %(session)s",
            session=session_id,
        )
        self.orders(host, session_id)

    def stream(self, device: FakeDevice, host: Machine, session_id: SessionId) -> Stream:
        """What an answer of the relay would say."""
        ((key, seq),) = self._stage.sql(
            "SELECT h.channel_key, s.attach_seq FROM hosts h, terminal_sessions s"
            " WHERE h.id = %(host)s AND s.id = %(session)s",
            host=host.id,
            session=session_id,
        )
        token = self._minted("stream", "relay", sub=str(session_id), device=str(device.device_id), attach_seq=seq)
        return Stream(session_id, token, key, seq)

    def session_token(self, device: FakeDevice, host: Machine, session_id: SessionId, profile: str = "shell") -> str:
        """A token that the host's check of tokens takes."""
        return self._minted(
            "session",
            "host",
            sub=str(session_id),
            host=str(host.id),
            device=str(device.device_id),
            profile=profile,
            session_user=ME,
            cnf={"jkt": thumbprint(device.channel_key.public_key().public_bytes_raw())},
        )

    def _minted(self, kind: str, audience: str, **claims: object) -> str:
        now = time.time()
        times = {"iat": now, "nbf": now, "exp": now + TTL_S, "jti": secrets.token_hex(16)}
        header = {"alg": "Ed25519", "typ": f"bothy-{kind}+jwt", "kid": self._key.kid}
        key = OKPKey.import_key(self._key.key)
        return jwt.encode(header, {"iss": "bothy", "aud": audience, **times, **claims}, key, algorithms=["Ed25519"])


def stream_of(answer: Answer) -> Stream:
    assert answer.status == 201, answer.body
    body = answer.body
    session_id = SessionId(UUID(body["session_id"]))
    return Stream(session_id, body["stream_token"], b64decode(body["host_channel_key"]), body["attach_seq"])


def line_of(device: FakeDevice, options: str = "") -> str:
    return f"{fingerprint(device.channel_key.public_key().public_bytes_raw())} laptop {options}\n"


@contextmanager
def listing(host: Machine, lines: str) -> Iterator[None]:
    """The host's operator lists devices while the block runs."""
    host.listed.write_text(lines)
    try:
        yield
    finally:
        host.listed.write_text("")


async def closed_as(stage: Stage, session_id: SessionId) -> tuple[Any, ...]:
    """Reason, detail and start of a session that is over."""

    def row() -> list[tuple[Any, ...]]:
        return stage.sql(
            "SELECT close_reason, close_detail, started_at FROM terminal_sessions WHERE id = %(id)s AND state = 'closed'",
            id=session_id,
        )

    await eventually(lambda: bool(row()))
    return row()[0]


@contextmanager
def rewriting(stage: Stage, column: LiteralString, value: LiteralString) -> Iterator[None]:
    """While the block runs the database writes another value into each new session."""
    stage.sql(
        "CREATE FUNCTION rewrite() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN NEW.{column} := '{value}'; RETURN NEW; END $$"
    )
    stage.sql("CREATE TRIGGER rewrite BEFORE INSERT ON terminal_sessions FOR EACH ROW EXECUTE FUNCTION rewrite()")
    try:
        yield
    finally:
        stage.sql("DROP FUNCTION rewrite CASCADE")


@pytest.mark.parametrize("way", ["opens_by_the_api", "opens_by_rows"])
async def test_a_device_of_the_servers_own_making_opens_nothing_on_a_host_that_lists_its_devices(
    stage: Stage, way: str
) -> None:
    intruder, host = Intruder(stage), stage.careful
    async with intruder.device(host) as ghost, FakeDevice(stage.url, stage.url) as true:
        with listing(host, line_of(true)):
            stream = await getattr(intruder, way)(ghost, host)
            async with attached(ghost, host, stream) as channel:
                token = intruder.session_token(ghost, host, stream.session_id)
                assert await channel.shake_hands(token) == "device_not_authorized"
    assert await closed_as(stage, stream.session_id) == ("open_failed", "refused", None)
    assert not host.ran(stream.session_id)
    assert host.told(stream.session_id, "authorized_devices has no line of SHA256:")
    assert host.told(stream.session_id, fingerprint(ghost.channel_key.public_key().public_bytes_raw()))


@pytest.mark.parametrize("way", ["opens_by_the_api", "opens_by_rows"])
async def test_where_no_devices_are_listed_the_same_device_gets_in_and_types(stage: Stage, way: str) -> None:
    intruder, host, canary = Intruder(stage), stage.trusting, stage.folder / f"canary-{way}"
    async with intruder.device(host) as ghost:
        stream = await getattr(intruder, way)(ghost, host)
        async with attached(ghost, host, stream) as channel:
            assert await channel.shake_hands(intruder.session_token(ghost, host, stream.session_id)) == "opened"
            await channel.run(f"touch {canary} && echo I am i''n", b"I am in")
    assert canary.exists()
    assert host.ran(stream.session_id)


@pytest.mark.parametrize("options", ["profiles=shell", "users=nobody"])
async def test_a_listed_device_opens_no_more_than_its_line_says_whatever_the_server_grants(
    stage: Stage, options: str
) -> None:
    host = stage.careful
    async with stage.device() as device:
        with listing(host, line_of(device, options)):
            stream = stream_of(await device.try_open(host.id, "admin", ME))
            async with attached(device, host, stream, "admin") as channel:
                assert await channel.shake_hands() == "device_not_authorized"
    assert not host.ran(stream.session_id)
    assert host.told(stream.session_id, f"for admin as {ME}")


@pytest.mark.parametrize(("column", "value"), [("profile", "admin"), ('"session_user"', "nobody")])
async def test_another_profile_or_user_than_the_device_asked_for_runs_nothing(
    stage: Stage, column: LiteralString, value: LiteralString
) -> None:
    asked = "shell" if column == "profile" else "admin"
    for host in (stage.careful, stage.trusting):
        async with stage.device() as device:
            with listing(host, line_of(device)), rewriting(stage, column, value):
                stream = stream_of(await device.try_open(host.id, asked, ME))
                if column == "profile" or os.geteuid() == 0:
                    async with attached(device, host, stream, asked) as channel:
                        assert await channel.shake_hands() == "profile_mismatch"
                    seen = "refused", "do not name the same profile and user"
                else:  # a service without rights becomes nobody else, whoever orders it
                    seen = "user_unknown", "cannot become nobody"
                assert await closed_as(stage, stream.session_id) == ("open_failed", seen[0], None)
        assert not host.ran(stream.session_id)
        assert host.told(stream.session_id, seen[1])


async def test_what_a_listed_device_once_sent_starts_nothing_and_types_nothing(stage: Stage) -> None:
    intruder, host, canary = Intruder(stage), stage.careful, stage.folder / "canary-replayed"
    async with stage.device() as device, intruder.device(host) as ghost:
        with listing(host, line_of(device)):
            stream = stream_of(await device.try_open(host.id, "shell", ME))
            async with attached(device, host, stream) as channel:
                assert await channel.shake_hands() == "opened"
                await channel.run(f"echo typed >> {canary}; echo do''ne", b"done")
            recorded = channel.sent

            # The session runs on, and the relay says that it is the ghost's.
            intruder.takes(ghost, host, stream.session_id)
            async with replayed(ghost, intruder.stream(ghost, host, stream.session_id)) as side:
                for message in recorded:
                    await side.send(message)
                await eventually(lambda: host.told(stream.session_id, "token_replayed"))

            # A service that was started anew has forgotten the token; the relay says that the session begins.
            host.restart()
            await closed_as(stage, stream.session_id)
            intruder.begins_again(host, stream.session_id)
            async with replayed(ghost, intruder.stream(ghost, host, stream.session_id)) as side:
                await side.send(recorded[0])
                assert isinstance(await side.receive(), bytes), "the host takes the first message for a device's"
                for message in recorded[1:]:
                    await side.send(message)
                await eventually(lambda: host.told(stream.session_id, "a message does not open"))
    assert host.ran(stream.session_id) == 1
    assert canary.read_text() == "typed\n"


def test_a_host_key_that_the_server_changed_is_refused_by_the_pin(stage: Stage) -> None:
    host, device = stage.careful, log_in(stage.folder / "device", stage.url, "laptop", stage.invite())
    line = ask("bothy", ["device", "show"], device).splitlines()[-1]
    words = [command("bothy"), "open", host.name, "--profile", "shell"]
    with listing(host, f"{line}\n"):
        with on_terminal(words, device) as (screen, ended):
            screen.type(b"exec sh\nPS1= PS2=; echo I am i''n\n")
            screen.expect(rb"I am in\r\n")
            screen.type(b"exit 0\n")
            screen.finish()
            assert ended() == 0
        started = host.started

        ((key,),) = stage.sql("SELECT channel_key FROM hosts WHERE id = %(id)s", id=host.id)
        forged = X25519PrivateKey.generate().public_key().public_bytes_raw()
        stage.sql("UPDATE hosts SET channel_key = %(key)s WHERE id = %(id)s", key=forged, id=host.id)
        try:
            with on_terminal(words, device) as (screen, ended):
                for shown in (key, forged):
                    screen.expect(re.escape(fingerprint(shown)).encode())
                screen.finish()
                assert ended() == 1
        finally:
            stage.sql("UPDATE hosts SET channel_key = %(key)s WHERE id = %(id)s", key=key, id=host.id)
        assert host.started == started
