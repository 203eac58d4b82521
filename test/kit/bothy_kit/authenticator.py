"""A software authenticator: real keys, real CBOR, a person who is verified, a counter.

What it makes goes through the server's real verifier. A test bends one thing by an argument; whatever it leaves alone is
what a good authenticator in a good browser would have said.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256

Algorithm = Literal["ES256", "EdDSA"]

_PRESENT, _VERIFIED, _ELIGIBLE, _BACKED_UP, _CREDENTIAL = 1, 1 << 2, 1 << 3, 1 << 4, 1 << 6
_COSE_NUMBERS = {"ES256": -7, "EdDSA": -8}


@dataclass(slots=True)
class Credential:
    """One passkey inside the authenticator."""

    id: bytes
    key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey
    user_handle: bytes
    count: int = 0


@dataclass(frozen=True, slots=True)
class Attestation:
    """What ``navigator.credentials.create`` gives."""

    id: bytes
    client_data: bytes
    attestation_object: bytes


@dataclass(frozen=True, slots=True)
class Assertion:
    """What ``navigator.credentials.get`` gives."""

    id: bytes
    client_data: bytes
    authenticator_data: bytes
    signature: bytes
    user_handle: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bent:
    """How an answer differs from a good one."""

    rp_id: str | None = None
    cross_origin: bool = False
    present: bool = True
    verified: bool = True
    kind: str | None = None
    alg: int | None = None
    count: int | None = None


GOOD = Bent()


class Authenticator:
    """Holds passkeys. ``counts``: whether its counter grows, which those that keep copies do not do."""

    def __init__(self, *, counts: bool = True, backed_up: bool = False) -> None:
        self.counts = counts
        self.backed_up = backed_up
        self.credentials: list[Credential] = []

    def create(
        self,
        origin: str,
        challenge: bytes,
        user_handle: bytes,
        *,
        algorithm: Algorithm = "ES256",
        credential_id: bytes | None = None,
        bent: Bent = GOOD,
    ) -> Attestation:
        """A new passkey for a page at ``origin``."""
        key = ec.generate_private_key(ec.SECP256R1()) if algorithm == "ES256" else Ed25519PrivateKey.generate()
        made = Credential(credential_id or secrets.token_bytes(32), key, user_handle)
        self.credentials.append(made)
        cose = cbor2.dumps(_cose(key, bent.alg or _COSE_NUMBERS[algorithm]), canonical=True)
        attested = bytes(16) + len(made.id).to_bytes(2, "big") + made.id + cose
        data = self._data(origin, made, bent, _CREDENTIAL) + attested
        attestation_object = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        return Attestation(made.id, _client_data("webauthn.create", origin, challenge, bent), attestation_object)

    def get(self, origin: str, challenge: bytes, allowed: Collection[bytes] = (), *, bent: Bent = GOOD) -> Assertion:
        """An answer with the newest passkey of those that are allowed, or of all."""
        used = next(each for each in reversed(self.credentials) if not allowed or each.id in allowed)
        used.count += self.counts
        data = self._data(origin, used, bent, 0)
        client_data = _client_data("webauthn.get", origin, challenge, bent)
        signature = _sign(used.key, data + hashlib.sha256(client_data).digest())
        return Assertion(used.id, client_data, data, signature, used.user_handle)

    def _data(self, origin: str, used: Credential, bent: Bent, flags: int) -> bytes:
        rp_id = bent.rp_id or origin.partition("://")[2].partition(":")[0]
        flags |= _PRESENT * bent.present | _VERIFIED * bent.verified | (_ELIGIBLE | _BACKED_UP) * self.backed_up
        count = used.count if bent.count is None else bent.count
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + count.to_bytes(4, "big")


def b64url(raw: bytes) -> str:
    """Bytes as WebAuthn writes them in JSON."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _client_data(kind: str, origin: str, challenge: bytes, bent: Bent) -> bytes:
    said = {"type": bent.kind or kind, "challenge": b64url(challenge), "origin": origin}
    return json.dumps(said | {"crossOrigin": bent.cross_origin}).encode()


def _cose(key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey, alg: int) -> dict[int, int | bytes]:
    if isinstance(key, Ed25519PrivateKey):
        return {1: 1, 3: alg, -1: 6, -2: key.public_key().public_bytes_raw()}
    point = key.public_key().public_numbers()
    return {1: 2, 3: alg, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")}


def _sign(key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey, signed: bytes) -> bytes:
    return key.sign(signed) if isinstance(key, Ed25519PrivateKey) else key.sign(signed, ec.ECDSA(SHA256()))
