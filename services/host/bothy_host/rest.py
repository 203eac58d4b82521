"""The two calls that a host makes over REST: pairing, and reading the server's public keys."""

from __future__ import annotations

import asyncio
import base64
import ssl
from typing import Any
from uuid import UUID

import httpx2
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from bothy_host.state import State
from bothy_host.tokens import KeysUnavailable
from bothy_wire.codes import code_hash
from bothy_wire.printable import printable
from bothy_wire.signing import Purpose, sign
from bothy_wire.unreachable import explain

JWKS_BYTES = 64 * 1024
"""Longest answer that is read."""


class PairError(Exception):
    """Pairing did not work and changed nothing. The message is one line for the operator."""


class Paired(Struct, frozen=True, forbid_unknown_fields=True):
    """The server's answer to a pairing."""

    host_id: UUID
    name: str
    state: str
    pairing_seq: int
    join: str


class _Problem(Struct, frozen=True):
    """An error of the server (RFC 9457)."""

    code: str
    detail: str = ""


def pair(audience: str, code: str, *, tls: ssl.SSLContext, timeout: float) -> tuple[State, str]:
    """Redeem a pairing code with fresh keys. Returns the new state and the host's state at the server.

    ``timeout`` in seconds. Raises :class:`PairError`.
    """
    signing_key, channel_key = Ed25519PrivateKey.generate(), X25519PrivateKey.generate()
    signing_public = signing_key.public_key().public_bytes_raw()
    channel_public = channel_key.public_key().public_bytes_raw()
    hashed = code_hash(code)
    signature = sign(signing_key, Purpose.HOST_PAIR, audience, hashed, signing_public, channel_public)
    body = {
        "code": code,
        "signing_key": base64.b64encode(signing_public).decode(),
        "channel_key": base64.b64encode(channel_public).decode(),
        "signature": base64.b64encode(signature).decode(),
    }
    try:
        with httpx2.Client(verify=tls, timeout=timeout) as client:
            answer = client.post(f"{audience}/api/v1/hosts/pair", json=body)
    except httpx2.HTTPError as error:
        raise PairError(explain(audience, error)) from error
    if answer.status_code != httpx2.codes.CREATED:
        raise PairError(_refusal(audience, answer))
    try:
        paired = msgspec.json.decode(answer.content, type=Paired)
    except msgspec.MsgspecError as error:
        raise PairError(f"{audience} answers, but not as a bothy relay: {error}") from error
    state = State(
        audience=audience,
        host_id=paired.host_id,
        name=paired.name,
        pairing_seq=paired.pairing_seq,
        join=paired.join,
        signing_key=signing_key.private_bytes_raw(),
        channel_key=channel_key.private_bytes_raw(),
    )
    return state, paired.state


async def fetch_jwks(audience: str, *, tls: ssl.SSLContext, patience: float) -> dict[str, Any]:
    """The server's public signing keys, within ``patience`` seconds. Raises :class:`KeysUnavailable`."""
    raw = b""
    try:
        async with (
            asyncio.timeout(patience),
            httpx2.AsyncClient(verify=tls, timeout=patience) as client,
            client.stream("GET", f"{audience}/.well-known/jwks.json") as answer,
        ):
            answer.raise_for_status()
            async for piece in answer.aiter_bytes():
                raw += piece
                if len(raw) > JWKS_BYTES:
                    raise KeysUnavailable("the answer is longer than any set of keys")
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (httpx2.HTTPError, msgspec.MsgspecError, TimeoutError) as error:
        raise KeysUnavailable(str(error) or "no answer in time") from error


def _refusal(audience: str, answer: httpx2.Response) -> str:
    try:
        problem = msgspec.json.decode(answer.content, type=_Problem)
    except msgspec.MsgspecError:
        return f"{audience} is no bothy relay, or the address is wrong (HTTP {answer.status_code})"
    match problem.code:
        case "pairing_code_invalid":
            return "the pairing code is wrong, used or expired; ask the host's owner for a new one"
        case "unavailable":
            return f"{audience} cannot reach its database now; try again {_when(answer)}"
        case "rate_limited":
            return f"too many attempts from here; try again {_when(answer)}"
        case _:
            return f"{audience} refused the pairing: {printable(problem.detail or problem.code)} ({printable(problem.code)})"


def _when(answer: httpx2.Response) -> str:
    wait = answer.headers.get("Retry-After", "")
    return f"in {wait} s" if wait.isascii() and wait.isdigit() else "in a moment"
