"""A device that speaks the real protocol, step by step."""

from __future__ import annotations

import base64
import hashlib
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

import httpx2 as httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_kit.sockets import FakeSide
from bothy_wire.codes import code_hash
from bothy_wire.frames import SideAccepted, StreamHello, StreamIdentify
from bothy_wire.ids import DeviceId, HostId, SessionId
from bothy_wire.limits import STREAM_SUBPROTOCOL, stream_path
from bothy_wire.signing import Purpose, sign


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the REST interface."""

    status: int
    body: dict[str, Any]
    headers: httpx.Headers

    @property
    def code(self) -> str:
        """The code of a problem."""
        return str(self.body.get("code"))


@dataclass(frozen=True, slots=True)
class Stream:
    """What an open or attach answered."""

    session_id: SessionId
    token: str
    host_channel_key: bytes
    attach_seq: int


class FakeDevice:
    """One device of a person. ``origin`` is what it signs for, ``url`` where it dials."""

    def __init__(self, origin: str, url: str) -> None:
        self.origin = origin
        self.url = url
        self.signing_key = Ed25519PrivateKey.generate()
        self.channel_key = X25519PrivateKey.generate()
        self.device_id = DeviceId(UUID(int=0))
        self.access_token = ""
        self._rest = httpx.AsyncClient(trust_env=False, timeout=15)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._rest.aclose()

    async def rest(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        url: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """One call below ``/api/v1``, with the access token when there is one; ``key`` is its ``Idempotency-Key``."""
        headers = {"Authorization": f"Bearer {self.access_token}"} if self.access_token else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        answer = await self._rest.request(method, f"{url or self.url}/api/v1{path}", json=body, headers=headers)
        return Answer(answer.status_code, answer.json(), answer.headers)

    def streaming(
        self, path: str, headers: dict[str, str], *, url: str | None = None
    ) -> AbstractAsyncContextManager[httpx.Response]:
        """An answer that goes on, below ``/api/v1``; leaving the block hangs up."""
        signed_in = {"Authorization": f"Bearer {self.access_token}", **headers}
        return self._rest.stream("GET", f"{url or self.url}/api/v1{path}", headers=signed_in)

    async def redeem(self, invite: str, name: str = "laptop") -> Answer:
        """Become a device."""
        keys = self.signing_key.public_key().public_bytes_raw(), self.channel_key.public_key().public_bytes_raw()
        signature = sign(self.signing_key, Purpose.INVITE_REDEEM, self.origin, code_hash(invite), *keys, name)
        body = {
            "code": invite,
            "name": name,
            "signing_key": b64(keys[0]),
            "channel_key": b64(keys[1]),
            "signature": b64(signature),
        }
        answer = await self.rest("POST", "/auth/invites/redeem", body)
        if answer.status == 201:
            self.device_id = DeviceId(UUID(answer.body["device_id"]))
        return answer

    async def login(self) -> Answer:
        """Get an access token."""
        made = await self.rest("POST", "/auth/challenge", {"device_id": str(self.device_id)})
        challenge = base64.b64decode(made.body["challenge"])
        signature = sign(self.signing_key, Purpose.DEVICE_LOGIN, self.origin, challenge, str(self.device_id))
        body = {"device_id": str(self.device_id), "challenge": b64(challenge), "signature": b64(signature)}
        answer = await self.rest("POST", "/auth/token", body)
        self.access_token = answer.body.get("access_token", "")
        return answer

    async def step_up(
        self,
        purpose: str,
        host_id: HostId | str = "",
        profile: str = "",
        session_user: str = "",
        *,
        url: str | None = None,
    ) -> str:
        """Confirm one act; the id of the step-up. What an act does not name is left out."""
        named: dict[str, str] = {"host_id": str(host_id), "profile": profile, "session_user": session_user}
        act = {"purpose": purpose, **{name: value for name, value in named.items() if value}}
        made = await self.rest("POST", "/step-up/challenges", act, url=url)
        challenge = base64.b64decode(made.body["challenge"])
        fields: list[bytes | str] = [challenge, str(self.device_id), purpose, *named.values()]
        signature = sign(self.signing_key, Purpose.DEVICE_STEP_UP, self.origin, *fields)
        proof = {"challenge": b64(challenge), "signature": b64(signature)}
        confirmed = await self.rest("POST", "/step-up", proof, url=url)
        return str(confirmed.body["step_up_id"])

    async def manage(
        self, path: str, body: dict[str, Any] | None = None, *, host_id: HostId | str, url: str | None = None
    ) -> Answer:
        """An act of management on a host, ``path`` below it, with a fresh step-up."""
        step_up_id = await self.step_up("manage_host", host_id, url=url)
        return await self.rest("POST", f"/hosts/{host_id}{path}", {**(body or {}), "step_up_id": step_up_id}, url=url)

    async def act(
        self,
        purpose: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        url: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """An act about the relay or the account, with a fresh step-up of the purpose."""
        step_up_id = await self.step_up(purpose, url=url)
        return await self.rest("POST", path, {**(body or {}), "step_up_id": step_up_id}, url=url, key=key)

    async def try_open(
        self, host_id: HostId, profile: str = "shell", session_user: str = "alex-shell", *, url: str | None = None
    ) -> Answer:
        """Open with a fresh step-up; the answer, whatever it is."""
        step_up_id = await self.step_up("open", host_id, profile, session_user)
        body = {"host_id": str(host_id), "profile": profile, "session_user": session_user, "step_up_id": step_up_id}
        return await self.rest("POST", "/terminal/sessions", body, url=url)

    async def open(self, host_id: HostId, *, url: str | None = None) -> Stream:
        """Open a session."""
        answer = await self.try_open(host_id, url=url)
        assert answer.status == 201, answer.code
        return _stream(answer)

    async def attach(self, session_id: SessionId, step_up_id: str | None = None, *, url: str | None = None) -> Stream:
        """Attach to a session."""
        answer = await self.rest("POST", f"/terminal/sessions/{session_id}/attach", {"step_up_id": step_up_id}, url=url)
        assert answer.status == 200, answer.code
        return _stream(answer)

    async def state(self, session_id: SessionId) -> dict[str, Any]:
        """The session as the REST interface shows it."""
        return (await self.rest("GET", f"/terminal/sessions/{session_id}")).body

    async def identify(self, stream: Stream, url: str | None = None, *, origin: str | None = None) -> FakeSide:
        """Dial the stream socket and prove the device; whether it is accepted is not read."""
        side = await FakeSide.dial(f"{url or self.url}{stream_path(stream.session_id)}", STREAM_SUBPROTOCOL)
        hello = await side.expect(StreamHello)
        hashed = hashlib.sha256(stream.token.encode()).digest()
        fields = (hello.challenge, str(stream.session_id), hashed)
        signature = sign(self.signing_key, Purpose.STREAM_IDENTIFY, origin or self.origin, *fields)
        await side.send(StreamIdentify(stream_token=stream.token, signature=signature))
        return side

    async def dial(self, stream: Stream, url: str | None = None) -> FakeSide:
        """An accepted stream side."""
        side = await self.identify(stream, url)
        await side.expect(SideAccepted)
        return side


def b64(raw: bytes) -> str:
    """Bytes as they stand in a JSON body."""
    return base64.b64encode(raw).decode()


def _stream(answer: Answer) -> Stream:
    body = answer.body
    return Stream(
        SessionId(UUID(body["session_id"])),
        body["stream_token"],
        base64.b64decode(body["host_channel_key"]),
        body["attach_seq"],
    )
