"""A stranger who has the database's rows, every log and a recording of all bytes can open nothing.

Everything is real: two nodes and a worker, nginx, ``bothy-host``, ``bothy`` on a pseudo-terminal.

What the stranger has is more than anybody outside can get. In front of the edge stands TLS, so a recording of the network holds
no token; this one is taken behind it, on both sides of the edge, REST and sockets alike. So it holds codes, access tokens, stream
tokens and session tokens, and here all of them still live. The rows are all rows of all tables, with what has not been used yet:
an invite, a pairing code, a challenge, a step-up. What a test makes old is as a recording of earlier holds it.

An access token that lives reads what its device may read, ends its person's sessions, and moves them to nowhere: their devices
take them back. Together with a step-up that was not spent it does what was confirmed. For a terminal that is not enough, since the
stream takes a signature of the device. What it is enough for stands in ``docs/security.md`` under *What is not covered*.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import pwd
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import httpx2 as httpx
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc import jwt
from joserfc.jwk import OKPKey
from websockets.exceptions import ConnectionClosed

from bothy_device.state import Login, Logins
from bothy_kit.demo_check import Screen, on_terminal
from bothy_kit.eventually import eventually
from bothy_kit.fake_device import FakeDevice, b64
from bothy_kit.fake_host import FakeHost
from bothy_kit.nginx import edge
from bothy_kit.processes import scratch
from bothy_kit.programs import Program, ask, command
from bothy_kit.sockets import Closed, FakeSide
from bothy_kit.wiretap import Message, Wiretap, wiretap
from bothy_kit.world_parts import (
    HOST,
    Node,
    administer,
    get,
    log_in,
    reserved_nodes,
    running_host,
    running_nodes,
    server_environment,
    wait_for_host,
)
from bothy_server.identity.adapters.keystore.store import load_keys
from bothy_wire.close_codes import CloseCode
from bothy_wire.codes import code_hash, normal_code
from bothy_wire.frames import SideAccepted, StreamHello, StreamIdentify
from bothy_wire.ids import DeviceId, HostId
from bothy_wire.limits import STREAM_SUBPROTOCOL, stream_path
from bothy_wire.signing import Purpose, sign

ME = pwd.getpwuid(os.geteuid()).pw_name
JWT = re.compile(r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+")
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
BYTEA = re.compile(r"\\x([0-9a-f]+)")
BASE64 = re.compile(r"(?<![\w+/-])[A-Za-z0-9+/]{22,88}={0,2}(?![\w+/=-])")

LIVES = (
    "BOTHY_IDENTITY__ACCESS_TOKEN_TTL",
    "BOTHY_IDENTITY__CHALLENGE_TTL",
    "BOTHY_IDENTITY__STEP_UP_WINDOW",
    "BOTHY_TERMINAL__SESSION_TOKEN_TTL",
)
"""Nothing here is refused for its age or for haste, except where a test makes it old."""

PROVEN = ("/api/v1/auth/token", "/api/v1/step-up")
"""What takes a signature over a challenge."""
ANYBODY_MAY = {("GET", "/.well-known/jwks.json"), ("POST", "/api/v1/auth/challenge")}
"""A challenge is of use to the holder of the device's key only."""
FOR_A_LIVING_TOKEN = {("POST", "/api/v1/step-up/challenges")}
"""And whatever only reads."""


@dataclass(frozen=True, slots=True)
class World:
    """What runs, with a session that is open all the while."""

    url: str
    """Where everybody dials who has a right to, and is recorded."""
    edge: str
    """Where the stranger dials."""
    folder: Path
    database: str
    nodes: tuple[Node, ...]
    outside: Wiretap
    inside: tuple[Wiretap, ...]
    service: Program
    host_id: HostId
    login: Login
    """The keys of the device that runs ``bothy``."""
    environment: dict[str, str]
    unused_invite: str
    unused_pairing_code: str
    typed: str
    printed: str
    screen: Screen

    def sql(self, statement: str) -> list[str]:
        with psycopg.connect(self.database) as connection:
            return [str(row[0]) for row in connection.execute(statement.encode()).fetchall()]

    def programs_started(self) -> int:
        return self.service.log.read_text().count(" runs as ")

    def goes_on(self) -> None:
        """The person at the open session notices nothing."""
        self.screen.type(b"echo st''ill here\n")
        self.screen.expect(rb"still here\r\n")

    async def takes_back(self) -> None:
        """An attach ends the stream before it; the person at it says that it is still theirs."""
        self.screen.expect(rb"continued on another device; Enter takes it back")
        seq = "SELECT sum(attach_seq) FROM terminal_sessions"
        before = self.sql(seq)
        self.screen.type(b"\r")  # alone: among other keys it would be text
        await eventually(lambda: self.sql(seq) != before)

    def who_may_enter(self) -> list[str]:
        """All that decides it, and all that was opened."""
        return [
            *self.sql("SELECT id || name || coalesce(disabled_at::text, '') FROM persons ORDER BY id"),
            *self.sql(
                "SELECT id || encode(signing_key || channel_key, 'hex') || coalesce(revoked_at::text, '') FROM devices ORDER BY id"
            ),
            *self.sql("SELECT o::text FROM host_owners o ORDER BY host_id, person_id"),
            *self.sql("SELECT g::text FROM host_grants g ORDER BY host_id, person_id"),
            *self.sql(
                "SELECT id || state || coalesce(encode(signing_key || channel_key, 'hex'), '') FROM hosts ORDER BY id"
            ),
            *self.sql("SELECT id || coalesce(used_at::text, '') FROM invites ORDER BY id"),
            *self.sql("SELECT id || coalesce(used_at::text, '') FROM pairing_codes ORDER BY id"),
            *self.sql("SELECT id || coalesce(consumed_at::text, '') FROM step_ups ORDER BY id"),
            *self.sql("SELECT id FROM terminal_sessions ORDER BY id"),
            str(self.programs_started()),
        ]


@asynccontextmanager
async def true_device(world: World) -> AsyncIterator[FakeDevice]:
    """The device that runs ``bothy``, in the hands of this script."""
    async with FakeDevice(world.url, world.url) as device:
        device.signing_key, device.channel_key = world.login.signer, world.login.channel
        device.device_id = DeviceId(world.login.device_id)
        assert (await device.login()).status == 200
        yield device


def every_access_is_logged(folder: Path) -> None:
    """The shipped edge logs nothing of a request; another one may."""
    path = folder / "nginx.conf"
    text = path.read_text()
    assert "access_log off;" in text
    path.write_text(
        text.replace("access_log off;", "access_log access.log;").replace(
            "error_log stderr crit", "error_log stderr info"
        )
    )


@pytest.fixture(scope="module")
def world(shared_database_url: str) -> Iterator[World]:
    with ExitStack() as stack:
        folder = stack.enter_context(scratch("bothy-stranger"))
        nodes, worker = stack.enter_context(reserved_nodes())
        inside = tuple(stack.enter_context(wiretap(("127.0.0.1", each.port))) for each in nodes)
        upstreams = [(node.name, "127.0.0.1", tap.port) for node, tap in zip(nodes, inside, strict=True)]

        def prepared(edge_folder: Path) -> None:
            every_access_is_logged(edge_folder)
            (folder / "access.log").symlink_to(edge_folder / "access.log")

        behind = stack.enter_context(edge(upstreams, log=folder / "edge.log", edit=prepared))
        outside = stack.enter_context(wiretap(("127.0.0.1", urlsplit(behind).port or 0)))
        url = f"http://127.0.0.1:{outside.port}"

        server = server_environment(shared_database_url, folder / "keys", url)
        server |= {"BOTHY_LOG__LEVEL": "debug", "BOTHY_IDENTITY__ADDRESS_RATE": "100000 per second"}
        server |= {"BOTHY_TERMINAL__OPEN_RATE": "100000 per second"}
        server |= dict.fromkeys(LIVES, "1 h")
        ask("bothy-server", ["keys", "init"], server)
        stack.enter_context(running_nodes((*nodes, worker), server, folder, lambda _: None))
        robin = administer(server, "person", "add", "Robin")
        environment = log_in(folder / "device", url, "laptop", robin["invite"])
        added = administer(server, "host", "add", HOST, "--owner", "Robin")
        service = stack.enter_context(running_host(folder, url, added["code"]))
        wait_for_host(nodes, service)

        typed, printed = f"typed{secrets.token_hex(12)}", f"printed{secrets.token_hex(12)}"
        screen, _ = stack.enter_context(on_terminal([command("bothy"), "open", HOST], environment))
        screen.type(b"exec sh\nPS1= PS2=; stty -echo; echo he''re\n")
        screen.expect(rb"here\r\n")
        screen.type(f"read hidden; echo go''t $(( ${{#hidden}} - 29 )) {printed[:9]}''{printed[9:]}\n".encode())
        screen.type(f"{typed}\n".encode())
        screen.expect(f"got 0 {printed}".encode())

        yield World(
            url=url,
            edge=behind,
            folder=folder,
            database=shared_database_url,
            nodes=nodes,
            outside=outside,
            inside=inside,
            service=service,
            host_id=HostId(UUID(added["host_id"])),
            login=Logins(folder / "device").load(None),
            environment=environment,
            unused_invite=administer(server, "person", "add", "Sam")["invite"],
            unused_pairing_code=administer(server, "host", "add", "lab-2", "--owner", "Robin")["code"],
            typed=typed,
            printed=printed,
            screen=screen,
        )


# ---- what the stranger has ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spoken:
    """A socket that was recorded: where, and what its caller said."""

    path: str
    subprotocol: str
    said: list[str | bytes]


@dataclass(frozen=True, slots=True)
class Haul:
    """Everything: as bytes, as text, and as what clients asked."""

    raw: bytes
    text: str
    requests: list[Message]
    sockets: list[Spoken]

    @property
    def tokens(self) -> list[str]:
        """All tokens of the relay, oldest first."""
        return list(dict.fromkeys(JWT.findall(self.text)))

    def of_kind(self, kind: str) -> list[str]:
        """The tokens of one kind: access, stream, session."""
        return [each for each in self.tokens if header(each)["typ"] == f"bothy-{kind}+jwt"]

    @property
    def ids(self) -> list[str]:
        return list(dict.fromkeys(ID.findall(self.text)))

    def binary(self, length: int) -> list[bytes]:
        """All hashes, keys, challenges and signatures of this length."""
        found = [bytes.fromhex(each) for each in BYTEA.findall(self.text) if len(each) % 2 == 0]
        found += [base64.b64decode(each) for each in BASE64.findall(self.text) if len(each) % 4 == 0]
        return list(dict.fromkeys(each for each in found if len(each) == length))

    def holds(self, secret: bytes) -> bool:
        """In any form that something of ours writes."""
        forms = secret, secret.hex().encode(), base64.b64encode(secret), base64.urlsafe_b64encode(secret).rstrip(b"=")
        return any(form in self.raw for form in forms)


def haul(world: World) -> Haul:
    """Take everything as it is now."""
    tables = world.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    texts = [row for table in tables for row in world.sql(f"SELECT t::text FROM {table} t")]
    logs = [path for path in world.folder.glob("*.log") if path.name != "bothy-host.log"]
    assert {"access.log", "edge.log", "api-1.log", "api-2.log", "worker.log"} <= {path.name for path in logs}
    texts += [path.read_text(errors="replace") for path in logs]
    texts += [get(node.internal_port, "/metrics")[1] for node in world.nodes]
    raw, requests, sockets = ["\n".join(texts).encode()], [], []
    for tap in (world.outside, *world.inside):
        for call in list(tap.calls):
            for half in (call.asked, call.answered):
                messages, said = half.read()
                raw += [bytes(half.raw), *(each.encode() if isinstance(each, str) else each for each in said)]
                texts += [bytes(half.raw).decode("latin-1"), *(each for each in said if isinstance(each, str))]
            messages, said = call.asked.read()
            if tap is world.outside and said:
                *before, upgrade = messages
                requests += before
                sockets.append(Spoken(upgrade.line.split()[1], upgrade.headers["sec-websocket-protocol"], said))
            elif tap is world.outside:
                requests += messages
    return Haul(b"\n".join(raw), "\n".join(texts), requests, sockets)


def aged(world: World, token: str) -> str:
    """The token as a recording of earlier holds it: signed by the same key, and two hours older in all its times."""
    (key,) = load_keys(world.folder / "keys")
    opened = jwt.decode(token, OKPKey.import_key(key.key), algorithms=["Ed25519"])
    older = {name: value - 7200 if name in ("iat", "nbf", "exp") else value for name, value in opened.claims.items()}
    return jwt.encode(opened.header, older, OKPKey.import_key(key.key), algorithms=["Ed25519"])


def header(token: str) -> dict[str, str]:
    return dict(json.loads(base64.urlsafe_b64decode(token.split(".", maxsplit=1)[0] + "==")))


# ---- what can be tried ----------------------------------------------------------------------------------------------

Prove = Callable[[bytes], bytes]


@asynccontextmanager
async def rest(world: World, token: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=world.edge, trust_env=False, timeout=30, headers=headers) as client:
        yield client


async def post(client: httpx.AsyncClient, path: str, **body: str | None) -> httpx.Response:
    return await client.post(f"/api/v1{path}", json=body)


async def ask_again(client: httpx.AsyncClient, request: Message, token: str | None) -> httpx.Response:
    """The same request, as it was but for its access token where one is given."""
    method, target, _ = request.line.split()
    kept = {
        name: value for name, value in request.headers.items() if name not in ("host", "content-length", "connection")
    }
    if token is not None and "authorization" in kept:
        kept["authorization"] = f"Bearer {token}"
    return await client.request(method, target, headers=kept, content=request.body)


async def say_again(world: World, spoken: Spoken, token: str | None = None) -> Closed:
    """The same frames on a new socket, with another stream token where one is given."""
    side = await FakeSide.dial(world.edge + spoken.path, spoken.subprotocol)
    with suppress(ConnectionClosed):
        await side.receive()
        for frame in spoken.said:
            await side.send(JWT.sub(token, frame) if token is not None and isinstance(frame, str) else frame)
    return await side.closed()


async def dial(world: World, session_id: str, token: str, prove: Prove) -> int:
    """Identify on a stream socket: 0 when it is accepted, else the close code."""
    side = await FakeSide.dial(world.edge + stream_path(session_id), STREAM_SUBPROTOCOL)
    try:
        hello = await side.expect(StreamHello)
        await side.send(StreamIdentify(stream_token=token, signature=prove(hello.challenge)))
        await side.expect(SideAccepted)
    except ConnectionClosed:
        return side.socket.close_code or 1006
    finally:
        await side.close()
    return 0


def by_its_key(world: World, session_id: str, token: str, key: Ed25519PrivateKey) -> Prove:
    """What only the holder of the device's key can make."""
    hashed = hashlib.sha256(token.encode()).digest()
    return lambda challenge: sign(key, Purpose.STREAM_IDENTIFY, world.url, challenge, session_id, hashed)


def as_recorded(signature: bytes) -> Prove:
    """What somebody made for another challenge."""
    return lambda _: signature


def refused(answer: httpx.Response) -> bool:
    return answer.status_code in {400, 401, 403, 404, 409, 422, 429}


def may_be_asked(request: httpx.Request, *, signed_in: bool) -> bool:
    """What opens nothing and changes nothing about who may enter."""
    asked = request.method, request.url.path
    return asked in ANYBODY_MAY or (signed_in and (request.method == "GET" or asked in FOR_A_LIVING_TOKEN))


# ---- the tests ------------------------------------------------------------------------------------------------------


def test_nothing_typed_or_shown_and_no_key_is_in_any_of_it(world: World) -> None:
    seen = haul(world)
    keys = [json.loads(path.read_text()) for path in world.folder.glob("host/host.json")]
    own = [world.login.signing_key, world.login.channel_key]
    private = [*own, *(base64.b64decode(each[name]) for each in keys for name in ("signing_key", "channel_key"))]
    private += [each.key.private_bytes_raw() for each in load_keys(world.folder / "keys")]
    assert len(private) == 5
    for secret in (world.typed.encode(), world.printed.encode(), *private):
        assert not seen.holds(secret)
    for code in (world.unused_invite, world.unused_pairing_code):
        assert not seen.holds(code.encode())
        assert not seen.holds(normal_code(code).encode())
    # What is there is found.
    assert seen.holds(world.login.signer.public_key().public_bytes_raw())
    assert {"access", "stream", "session"} <= {header(each)["typ"].split("+")[0][6:] for each in seen.tokens}
    assert seen.holds(code_hash(world.unused_invite))
    assert "set-cookie" not in seen.text.lower()
    assert {each.path.split("/")[3] for each in seen.sockets} == {"hosts", "terminal"}
    assert sum(isinstance(frame, bytes) for each in seen.sockets for frame in each.said) > 10


async def test_what_was_recorded_is_refused_when_it_comes_again(world: World) -> None:
    before, seen = world.who_may_enter(), haul(world)
    turned_away, sessions = set(), set(world.sql("SELECT id FROM terminal_sessions"))
    async with rest(world) as client:
        for request in seen.requests:
            answer = await ask_again(client, request, None)
            if refused(answer):
                turned_away.add(answer.request.url.path.removeprefix("/api/v1"))
            elif answer.request.url.path == "/api/v1/terminal/sessions" and answer.request.method == "POST":
                assert answer.json()["session_id"] in sessions, "a repeat names what was made before"
            else:
                assert may_be_asked(answer.request, signed_in=True), (request.line, answer.status_code)
    assert {"/auth/invites/redeem", "/auth/token", "/step-up", "/hosts/pair"} <= turned_away
    for spoken in seen.sockets:
        closed = await say_again(world, spoken)
        assert (closed.code, closed.messages) == (CloseCode.IDENTIFY_REFUSED, []), spoken.path
    assert world.who_may_enter() == before


async def test_no_value_stands_in_for_a_proof(world: World) -> None:
    async with true_device(world) as device:
        step_up_id = await device.step_up("open", world.host_id, "shell", ME)
        await device.rest("POST", "/auth/challenge", {"device_id": str(device.device_id)})
    before, seen = world.who_may_enter(), haul(world)
    hashes, signatures = seen.binary(32), seen.binary(64)
    proofs = {json.loads(each.body)["signature"] for each in seen.requests if each.line.split()[1] in PROVEN}
    values = [*seen.tokens, *seen.ids, *(each.hex() for each in hashes), *map(b64, [*hashes, *signatures])]
    assert step_up_id in values
    assert len(hashes) > 20
    assert len(proofs) >= 4
    assert proofs < {*map(b64, signatures)}
    living = seen.of_kind("access")[-1]
    names = {"host_id": str(world.host_id), "profile": "shell", "session_user": ME}

    async with rest(world) as client:
        let_in = set()
        for value in values:
            answer = await client.get("/api/v1/hosts", headers={"Authorization": f"Bearer {value}"})
            let_in |= {value} if answer.status_code == 200 else set()
        assert let_in == set(seen.of_kind("access")), "of all values the tokens that live read, and nothing else"
        for challenge, signature in itertools.product(map(b64, hashes), proofs):
            proof = {"challenge": challenge, "signature": signature}
            assert refused(await post(client, "/auth/token", device_id=str(world.login.device_id), **proof))
    for code in (each for each in values if len(each) <= 64):
        async with FakeDevice(world.url, world.edge) as ghost, FakeHost(world.url, world.edge) as machine:
            answers = [(await ghost.redeem(code)).code, (await machine.pair(code)).json()["code"]]
        assert {*answers} <= {"invite_invalid", "pairing_code_invalid", "rate_limited"}
    async with rest(world, living) as client:
        for challenge, signature in itertools.product(map(b64, hashes), proofs):
            assert refused(await post(client, "/step-up", challenge=challenge, signature=signature))
        for value in seen.ids:
            if value != step_up_id:
                answer = await post(client, "/terminal/sessions", **names, step_up_id=value)
                assert (answer.status_code, answer.json()["code"]) == (401, "step_up_required")
    assert world.who_may_enter() == before


async def test_a_token_that_lives_and_a_step_up_that_was_not_used_open_no_stream(world: World) -> None:
    async with true_device(world) as device:
        step_up_id = await device.step_up("open", world.host_id, "shell", ME)
    started, seen = world.programs_started(), haul(world)
    running = world.sql("SELECT id FROM terminal_sessions WHERE state = 'active'")
    names = {"host_id": str(world.host_id), "profile": "shell", "session_user": ME}
    async with rest(world, seen.of_kind("access")[-1]) as client:
        made = [await post(client, "/terminal/sessions", **names, step_up_id=step_up_id)]
        made += [await post(client, f"/terminal/sessions/{each}/attach", step_up_id=None) for each in running]
    assert [each.status_code for each in made] == [201, *(200 for _ in running)]
    assert running
    granted = [(each.json()["session_id"], each.json()["stream_token"]) for each in made]
    for session_id, token in [*granted, *((each, token) for each in running for token in seen.of_kind("stream"))]:
        own = by_its_key(world, session_id, token, Ed25519PrivateKey.generate())
        for prove in (own, *map(as_recorded, seen.binary(64))):
            assert await dial(world, session_id, token, prove) == CloseCode.IDENTIFY_REFUSED
    session_id, token = granted[0]  # and whoever holds the key is let in by the same words
    assert await dial(world, session_id, token, by_its_key(world, session_id, token, world.login.signer)) == 0
    assert world.programs_started() == started
    await world.takes_back()
    world.goes_on()


async def test_what_has_had_its_time_is_refused_wherever_it_is_shown(world: World) -> None:
    before, seen = world.who_may_enter(), haul(world)
    access, stream = (aged(world, seen.of_kind(kind)[-1]) for kind in ("access", "stream"))
    async with rest(world) as client:
        for request in seen.requests:
            answer = await ask_again(client, request, access)
            assert refused(answer) or may_be_asked(answer.request, signed_in=False), request.line
    for spoken in seen.sockets:
        closed = await say_again(world, spoken, stream)
        assert closed.code in (CloseCode.IDENTIFY_REFUSED, CloseCode.TOKEN_EXPIRED), spoken.path
        assert closed.messages == []
    (running, *_) = world.sql("SELECT id FROM terminal_sessions WHERE state = 'active'")
    prove = by_its_key(world, running, stream, world.login.signer)
    assert await dial(world, running, stream, prove) == CloseCode.TOKEN_EXPIRED
    assert world.who_may_enter() == before


async def test_whoever_has_the_keys_and_codes_is_let_in_by_the_same_requests(world: World) -> None:
    started = world.programs_started()
    async with true_device(world) as device:
        assert (await device.rest("GET", "/hosts")).status == 200
        opened = await device.try_open(world.host_id, "shell", ME)
        assert opened.status == 201
        session_id, token = opened.body["session_id"], opened.body["stream_token"]
        assert await dial(world, session_id, token, by_its_key(world, session_id, token, device.signing_key)) == 0
    async with FakeDevice(world.url, world.url) as sams, FakeHost(world.url, world.url) as machine:
        assert (await sams.redeem(world.unused_invite)).status == 201
        assert (await machine.pair(world.unused_pairing_code)).status_code == 201
    with on_terminal([command("bothy"), "open", HOST], world.environment) as (screen, ended):
        screen.type(b"exec sh\nPS1= PS2=; echo I am i''n\n")
        screen.expect(rb"I am in\r\n")
        screen.type(b"exit 0\n")
        screen.finish()
        assert ended() == 0
    assert world.programs_started() == started + 1
    world.goes_on()
