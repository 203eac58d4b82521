"""The server's REST API as the device needs it: typed answers, errors as words, an access token when one is needed.

The access token is fetched with the device's key, kept in memory only, and fetched again once when the server says
``token_invalid``.
"""

from __future__ import annotations

import http
import re
import uuid
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

import httpx2
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Struct

from bothy_device import texts, tls
from bothy_device.failure import AnswerLost, Failure, Unreachable
from bothy_device.reconnect import LATER
from bothy_device.state import Login
from bothy_wire.codes import code_hash
from bothy_wire.signing import Purpose, sign
from bothy_wire.unreachable import explain, is_local

ANSWER_BYTES = 16 * 1024 * 1024
"""An answer larger than this is not read on."""

T = TypeVar("T")


class Redeemed(Struct, frozen=True):
    """Who this device is now."""

    device_id: UUID
    person_id: UUID
    person_name: str


class Host(Struct, frozen=True):
    """A host as the caller may see it. ``session_users`` empty: any, the caller owns it."""

    host_id: UUID
    name: str
    state: str
    disabled_reason: str | None
    presence: str
    profiles: dict[str, list[str]]
    channel_key: bytes | None
    fingerprint: str | None
    owner: bool
    session_users: list[str]
    last_seen_at: str | None


class Opened(Struct, frozen=True):
    """A session to dial: where, with which token, and the channel key that the host should show."""

    session_id: UUID
    host_id: UUID
    profile: str
    session_user: str
    stream_path: str
    stream_token: str
    host_channel_key: bytes
    expires_in_s: float
    attach_seq: int


class SessionRow(Struct, frozen=True):
    """A session as the server knows it; instants in RFC 3339."""

    session_id: UUID
    host_id: UUID
    host_name: str
    person_id: UUID
    person_name: str
    device_id: UUID
    device_name: str
    profile: str
    session_user: str
    state: str
    close_reason: str | None
    close_detail: str | None
    opened_at: str
    started_at: str | None
    detached_at: str | None
    closed_at: str | None
    expires_at: str


class _Hosts(Struct, frozen=True):
    hosts: list[Host]


class _Sessions(Struct, frozen=True):
    sessions: list[SessionRow]


class _Challenge(Struct, frozen=True):
    challenge: bytes


class _Token(Struct, frozen=True):
    access_token: str


class _StepUp(Struct, frozen=True):
    step_up_id: UUID


class _Problem(Struct, frozen=True):
    code: str = ""
    detail: str = ""


class Rest:
    """One server; an async context manager. Every call raises :class:`Failure` with words for the person."""

    def __init__(self, origin: str, *, timeout: float, login: Login | None = None) -> None:
        """``timeout`` in seconds. Without ``login`` only :meth:`redeem` is possible."""
        self._origin = origin
        self._login = login
        self._access_token: str | None = None
        self._trust = tls.context(origin)
        self._timeout = timeout

    async def __aenter__(self) -> Self:
        try:
            self._client = httpx2.AsyncClient(
                base_url=f"{self._origin}/api/v1",
                timeout=self._timeout,
                # Without TLS there is nothing to verify, and loading authorities would only take time.
                verify=self._trust if self._trust is not None else False,
                headers={"User-Agent": "bothy"},
            )
        except (ImportError, ValueError) as error:  # a proxy of a kind that cannot be used
            raise Failure(f"cannot use the proxy that the environment names: {error}") from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def redeem(self, code: str, name: str, signer: Ed25519PrivateKey, channel_key: bytes) -> Redeemed:
        """Spend an invite code, in its normal form, on this device's keys."""
        signing_key = signer.public_key().public_bytes_raw()
        hashed = code_hash(code)
        signature = sign(signer, Purpose.INVITE_REDEEM, self._origin, hashed, signing_key, channel_key, name)
        body = {
            "code": code,
            "name": name,
            "signing_key": signing_key,
            "channel_key": channel_key,
            "signature": signature,
        }
        return await self.send("POST", "/auth/invites/redeem", Redeemed, body, _new_key())

    async def hosts(self) -> list[Host]:
        """The hosts that the person may see."""
        return (await self.call("GET", "/hosts", _Hosts)).hosts

    async def confirm(self, host_id: UUID, fingerprint: str) -> Host:
        """As its owner, make a freshly paired host active: its key is the one that the machine showed."""
        body = {"fingerprint": fingerprint, "step_up_id": await self.step_up("manage_host", host_id)}
        return await self.call("POST", f"/hosts/{host_id}/confirm", Host, body)

    async def sessions(self, *, ended: bool) -> list[SessionRow]:
        """The person's sessions; with ``ended`` those that are closed, too."""
        return (await self.call("GET", f"/terminal/sessions?all={str(ended).lower()}", _Sessions)).sessions

    async def sessions_of_host(self, host_id: UUID, *, ended: bool) -> list[SessionRow]:
        """Everybody's sessions on a host that the person owns."""
        return (await self.call("GET", f"/hosts/{host_id}/sessions?all={str(ended).lower()}", _Sessions)).sessions

    async def session(self, session_id: UUID) -> SessionRow:
        """One session."""
        return await self.call("GET", f"/terminal/sessions/{session_id}", SessionRow)

    async def open(self, host_id: UUID, profile: str, user: str) -> Opened:
        """A new session, with a fresh proof of this device's key."""
        step_up = await self.step_up("open", host_id, profile, user)
        body = {"host_id": host_id, "profile": profile, "session_user": user, "step_up_id": step_up}
        return await self.make("/terminal/sessions", Opened, body)

    async def attach(self, row: SessionRow) -> Opened:
        """Go on with a session. The proof is made when the server asks for it: not for the session's own device."""
        path = f"/terminal/sessions/{row.session_id}/attach"
        try:
            return await self.make(path, Opened, {"step_up_id": None})
        except Failure as failure:
            if failure.code != "step_up_required":
                raise
        step_up = await self.step_up("attach", row.host_id, row.profile, row.session_user)
        return await self.make(path, Opened, {"step_up_id": step_up})

    async def close(self, session_id: UUID) -> SessionRow:
        """End a session."""
        return await self.call("POST", f"/terminal/sessions/{session_id}/close", SessionRow, {})

    async def terminate(self, session_id: UUID) -> SessionRow:
        """End anybody's session on a host that the person owns."""
        return await self.call("POST", f"/terminal/sessions/{session_id}/terminate", SessionRow, {})

    async def step_up(self, purpose: str, host_id: UUID | None = None, profile: str = "", user: str = "") -> UUID:
        """A fresh proof of this device's key for one act, which names what its purpose is about and nothing else."""
        login = self._known()
        named = {"host_id": "" if host_id is None else str(host_id), "profile": profile, "session_user": user}
        wanted = {"purpose": purpose, **{name: value for name, value in named.items() if value}}
        challenge = (await self.call("POST", "/step-up/challenges", _Challenge, wanted)).challenge
        fields: list[bytes | str] = [challenge, str(login.device_id), purpose, *named.values()]
        signature = sign(login.signer, Purpose.DEVICE_STEP_UP, login.server, *fields)
        proof = {"challenge": challenge, "signature": signature}
        return (await self.call("POST", "/step-up", _StepUp, proof)).step_up_id

    async def make(self, path: str, answer: type[T], body: dict[str, Any]) -> T:
        """A POST that makes something; once, also where it is sent again because the answer was lost."""
        key = _new_key()
        try:
            return await self.call("POST", path, answer, body, key)
        except AnswerLost:
            return await self.call("POST", path, answer, body, key)

    async def call(
        self, method: str, path: str, answer: type[T], body: dict[str, Any] | None = None, key: str | None = None
    ) -> T:
        """An authenticated call. ``key`` makes a repeat of a POST harmless, also behind a renewed token."""
        if self._access_token is not None:
            try:
                return await self.send(method, path, answer, body, key)
            except Failure as failure:
                if failure.code != "token_invalid":
                    raise
        self._access_token = None
        self._access_token = await self._log_in()
        return await self.send(method, path, answer, body, key)

    async def _log_in(self) -> str:
        login = self._known()
        asked = await self.send("POST", "/auth/challenge", _Challenge, {"device_id": login.device_id}, None)
        signature = sign(login.signer, Purpose.DEVICE_LOGIN, login.server, asked.challenge, str(login.device_id))
        proof = {"device_id": login.device_id, "challenge": asked.challenge, "signature": signature}
        return (await self.send("POST", "/auth/token", _Token, proof, None)).access_token

    def _known(self) -> Login:
        assert self._login is not None
        return self._login

    async def send(
        self, method: str, path: str, answer: type[T], body: dict[str, Any] | None = None, key: str | None = None
    ) -> T:
        """A call without signing in before it. ``path`` is below ``/api/v1``."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._access_token is not None:
            headers["Authorization"] = f"Bearer {self._access_token}"
        if key is not None:
            headers["Idempotency-Key"] = key
        content = None if body is None else msgspec.json.encode(body)
        try:
            async with self._client.stream(method, path, content=content, headers=headers) as response:
                raw = b""
                async for piece in response.aiter_bytes():
                    raw += piece
                    if len(raw) > ANSWER_BYTES:
                        raise Unreachable(f"{self._origin} sends more than an answer; is it a bothy relay?")
        except httpx2.TimeoutException as error:
            raise Unreachable(explain(self._origin, TimeoutError())) from error
        except (httpx2.ReadError, httpx2.RemoteProtocolError) as error:
            raise AnswerLost(explain(self._origin, error), local=is_local(error)) from error
        except httpx2.HTTPError as error:
            raise Unreachable(explain(self._origin, error), local=is_local(error)) from error
        if not response.is_success:
            raise self._refused(response, raw)
        try:
            return msgspec.json.decode(raw, type=answer)
        except msgspec.MsgspecError as error:
            raise Unreachable(f"{self._origin} gave an answer that is none: {error}; is it a bothy relay?") from error

    def _refused(self, response: httpx2.Response, raw: bytes) -> Failure:
        try:
            told = msgspec.json.decode(raw, type=_Problem)
        except msgspec.MsgspecError:
            told = _Problem()
        if not told.code:
            name = http.HTTPStatus(response.status_code).phrase if response.status_code in _KNOWN_STATUS else "?"
            kind = AnswerLost if response.status_code in _OF_AN_EDGE else Unreachable
            return kind(f"{self._origin} answered {response.status_code} ({name}); is it a bothy relay?")
        words = texts.problem(told.code, told.detail)
        wait = response.headers.get("Retry-After", "")
        retry_after = int(wait) if re.fullmatch(r"[0-9]{1,9}", wait) else 0
        if retry_after and told.code in LATER:
            words += f" (in {retry_after} s)"
        return Failure(words, code=told.code, retry_after=retry_after)


_OF_AN_EDGE = frozenset({502, 504})
"""Without a problem inside: the edge lost the node that it had passed the request on to."""
_KNOWN_STATUS = frozenset(status.value for status in http.HTTPStatus)


def _new_key() -> str:
    return uuid.uuid4().hex
