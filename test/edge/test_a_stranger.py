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
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress

import httpx2 as httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from joserfc import jwt
from joserfc.jwk import OKPKey
from websockets.exceptions import ConnectionClosed

from bothy_kit.demo_check import on_terminal
from bothy_kit.eventually import eventually
from bothy_kit.fake_device import FakeDevice, b64
from bothy_kit.programs import command
from bothy_kit.sockets import Closed, FakeSide
from bothy_kit.tapped_world import Spoken, TappedWorld, haul, tapped_world, token_kind, with_tokens
from bothy_kit.wiretap import Message
from bothy_kit.world_parts import HOST
from bothy_server.identity.adapters.keystore.store import load_keys
from bothy_wire.close_codes import CloseCode
from bothy_wire.codes import code_hash, normal_code
from bothy_wire.frames import SideAccepted, StreamHello, StreamIdentify
from bothy_wire.ids import DeviceId
from bothy_wire.limits import STREAM_SUBPROTOCOL, stream_path
from bothy_wire.signing import Purpose, sign

ME = pwd.getpwuid(os.geteuid()).pw_name
PROVEN = ("/api/v1/auth/token", "/api/v1/step-up")
"""What takes a signature over a challenge."""
ANYBODY_MAY = {("GET", "/.well-known/jwks.json"), ("POST", "/api/v1/auth/challenge")}
"""A challenge is of use to the holder of the device's key only."""
FOR_A_LIVING_TOKEN = {("POST", "/api/v1/step-up/challenges")}
"""And whatever only reads."""


@pytest.fixture(scope="module")
def world(shared_database_url: str) -> Iterator[TappedWorld]:
    with tapped_world(shared_database_url) as running:
        yield running


# ---- what can be tried ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def true_device(world: TappedWorld) -> AsyncIterator[FakeDevice]:
    """The device that runs ``bothy``, in the hands of this script."""
    async with FakeDevice(world.url, world.url) as device:
        device.signing_key, device.channel_key = world.login.signer, world.login.channel
        device.device_id = DeviceId(world.login.device_id)
        assert (await device.login()).status == 200
        yield device


def aged(world: TappedWorld, token: str) -> str:
    """The token as a recording of earlier holds it: signed by the same key, and two hours older in all its times."""
    (key,) = load_keys(world.folder / "keys")
    opened = jwt.decode(token, OKPKey.import_key(key.key), algorithms=["Ed25519"])
    older = {name: value - 7200 if name in ("iat", "nbf", "exp") else value for name, value in opened.claims.items()}
    return jwt.encode(opened.header, older, OKPKey.import_key(key.key), algorithms=["Ed25519"])


Prove = Callable[[bytes], bytes]


@asynccontextmanager
async def rest(world: TappedWorld, token: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=world.edge, trust_env=False, timeout=30, headers=headers) as client:
        yield client


async def post(client: httpx.AsyncClient, path: str, **body: str | None) -> httpx.Response:
    return await client.post(f"/api/v1{path}", json=body)


async def pair(client: httpx.AsyncClient, world: TappedWorld, code: str) -> httpx.Response:
    """Become a host, with new keys."""
    signing, channel = Ed25519PrivateKey.generate(), X25519PrivateKey.generate()
    keys = signing.public_key().public_bytes_raw(), channel.public_key().public_bytes_raw()
    signature = sign(signing, Purpose.HOST_PAIR, world.url, code_hash(code), *keys)
    proof = {"signing_key": b64(keys[0]), "channel_key": b64(keys[1]), "signature": b64(signature)}
    return await post(client, "/hosts/pair", code=code, **proof)


async def ask_again(client: httpx.AsyncClient, request: Message, token: str | None) -> httpx.Response:
    """The same request, as it was but for its access token where one is given."""
    method, target, _ = request.line.split()
    kept = {
        name: value for name, value in request.headers.items() if name not in ("host", "content-length", "connection")
    }
    if token is not None and "authorization" in kept:
        kept["authorization"] = f"Bearer {token}"
    return await client.request(method, target, headers=kept, content=request.body)


async def say_again(world: TappedWorld, spoken: Spoken, token: str | None = None) -> Closed:
    """The same frames on a new socket, with another stream token where one is given."""
    side = await FakeSide.dial(world.edge + spoken.path, spoken.subprotocol)
    with suppress(ConnectionClosed):
        await side.receive()
        for frame in spoken.said:
            await side.send(with_tokens(token, frame) if token is not None and isinstance(frame, str) else frame)
    return await side.closed()


async def dial(world: TappedWorld, session_id: str, token: str, prove: Prove) -> int:
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


def events(world: TappedWorld, token: str) -> str:
    """The feed of events from its beginning until it tells of the session that is open."""
    headers, told = {"Authorization": f"Bearer {token}", "Last-Event-ID": "0"}, ""
    (running,) = world.sql("SELECT id FROM terminal_sessions WHERE state = 'active'")
    with httpx.stream("GET", f"{world.edge}/api/v1/events", headers=headers, timeout=30, trust_env=False) as answer:
        for piece in answer.iter_text():
            told += piece
            if running in told:
                break
    assert running in told
    return told


def by_its_key(world: TappedWorld, session_id: str, token: str, key: Ed25519PrivateKey) -> Prove:
    """What only the holder of the device's key can make."""
    hashed = hashlib.sha256(token.encode()).digest()
    return lambda challenge: sign(key, Purpose.STREAM_IDENTIFY, world.url, challenge, session_id, hashed)


def as_recorded(signature: bytes) -> Prove:
    """What somebody made for another challenge."""
    return lambda _: signature


def refused(answer: httpx.Response) -> bool:
    return answer.status_code in {400, 401, 403, 404, 409, 422}


def may_be_asked(request: httpx.Request, *, signed_in: bool) -> bool:
    """What opens nothing and changes nothing about who may enter."""
    asked = request.method, request.url.path
    return asked in ANYBODY_MAY or (signed_in and (request.method == "GET" or asked in FOR_A_LIVING_TOKEN))


def goes_on(world: TappedWorld) -> None:
    """The person at the open session notices nothing."""
    world.screen.type(b"echo st''ill here\n")
    world.screen.expect(rb"still here\r\n")


async def takes_back(world: TappedWorld) -> None:
    """An attach ends the stream before it; the person at that one says that the session is still theirs."""
    world.screen.expect(rb"continued on another device; Enter takes it back")
    attaches = "SELECT sum(attach_seq) FROM terminal_sessions"
    before = world.sql(attaches)
    world.screen.type(b"\r")  # alone: among other keys it would be text
    await eventually(lambda: world.sql(attaches) != before)


# ---- the tests ------------------------------------------------------------------------------------------------------


def test_nothing_typed_or_shown_and_no_key_is_in_any_of_it(world: TappedWorld) -> None:
    seen = haul(world)
    keys = [json.loads(path.read_text()) for path in world.folder.glob("host/host.json")]
    own = [world.login.signing_key, world.login.channel_key]
    private = [*own, *(base64.b64decode(each[name]) for each in keys for name in ("signing_key", "channel_key"))]
    private += [each.key.private_bytes_raw() for each in load_keys(world.folder / "keys")]
    assert len(private) == 5
    told = events(world, seen.of_kind("access")[-1])
    for secret in (world.typed.encode(), world.printed.encode(), *private):
        assert not seen.holds(secret)
        assert secret not in told.encode()
    for code in (world.unused_invite, world.unused_pairing_code):
        assert not seen.holds(code.encode())
        assert not seen.holds(normal_code(code).encode())
    # What is there is found.
    assert seen.holds(world.login.signer.public_key().public_bytes_raw())
    assert {"access", "stream", "session"} <= {token_kind(each) for each in seen.tokens}
    assert seen.holds(code_hash(world.unused_invite))
    assert "set-cookie" not in seen.text.lower()
    assert {each.path.split("/")[3] for each in seen.sockets} == {"hosts", "terminal"}
    assert sum(isinstance(frame, bytes) for each in seen.sockets for frame in each.said) > 10


async def test_what_was_recorded_is_refused_when_it_comes_again(world: TappedWorld) -> None:
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


async def test_no_value_stands_in_for_a_proof(world: TappedWorld) -> None:
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
    async with FakeDevice(world.url, world.edge) as ghost, rest(world) as client:
        for code in (each for each in values if len(each) <= 64):
            answers = (await ghost.redeem(code)).code, (await pair(client, world, code)).json()["code"]
            assert {*answers} <= {"invite_invalid", "pairing_code_invalid"}
    async with rest(world, living) as client:
        for challenge, signature in itertools.product(map(b64, hashes), proofs):
            assert refused(await post(client, "/step-up", challenge=challenge, signature=signature))
        for value in seen.ids:
            if value != step_up_id:
                answer = await post(client, "/terminal/sessions", **names, step_up_id=value)
                assert (answer.status_code, answer.json()["code"]) == (401, "step_up_required")
    assert world.who_may_enter() == before


async def test_a_token_that_lives_and_a_step_up_that_was_not_used_open_no_stream(world: TappedWorld) -> None:
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
    made_for_sockets = [base64.b64decode(json.loads(each.said[0])["signature"]) for each in seen.sockets]
    assert len(made_for_sockets) >= 3
    granted = [(each.json()["session_id"], each.json()["stream_token"]) for each in made]
    for session_id, token in [*granted, *((each, token) for each in running for token in seen.of_kind("stream"))]:
        own = by_its_key(world, session_id, token, Ed25519PrivateKey.generate())
        for prove in (own, *map(as_recorded, made_for_sockets)):
            assert await dial(world, session_id, token, prove) == CloseCode.IDENTIFY_REFUSED
    session_id, token = granted[0]  # and whoever holds the key is let in by the same words
    assert await dial(world, session_id, token, by_its_key(world, session_id, token, world.login.signer)) == 0
    assert world.programs_started() == started
    await takes_back(world)
    goes_on(world)


async def test_what_has_had_its_time_is_refused_wherever_it_is_shown(world: TappedWorld) -> None:
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


async def test_whoever_has_the_keys_and_codes_is_let_in_by_the_same_requests(world: TappedWorld) -> None:
    started = world.programs_started()
    async with true_device(world) as device:
        assert (await device.rest("GET", "/hosts")).status == 200
        opened = await device.try_open(world.host_id, "shell", ME)
        assert opened.status == 201
        session_id, token = opened.body["session_id"], opened.body["stream_token"]
        assert await dial(world, session_id, token, by_its_key(world, session_id, token, device.signing_key)) == 0
    async with FakeDevice(world.url, world.edge) as sams, rest(world) as client:
        assert (await sams.redeem(world.unused_invite)).status == 201
        assert (await pair(client, world, world.unused_pairing_code)).status_code == 201
    with on_terminal([command("bothy"), "open", HOST], world.environment) as (screen, ended):
        screen.type(b"exec sh\nPS1= PS2=; echo I am i''n\n")
        screen.expect(rb"I am in\r\n")
        screen.type(b"exit 0\n")
        screen.finish()
        assert ended() == 0
    assert world.programs_started() == started + 1
    goes_on(world)
