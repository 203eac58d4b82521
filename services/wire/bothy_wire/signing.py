"""Domain-separated signatures.

Signed bytes are a u16 length and the label ``bothy-<purpose>-v1``, then fields with a u32 length each. The first field is
always the *audience*: the canonical origin that the client dialled. A signature made for one purpose or one server is
worthless for any other (``docs/spec/vectors/signing.json`` holds shared test vectors).
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterable
from enum import StrEnum
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_DEFAULT_PORTS = {"http": 80, "https": 443}


class Purpose(StrEnum):
    """Every purpose that something is signed for, and its fields after the audience. There is no other list."""

    HOST_IDENTIFY = "host-identify"
    """challenge, host_id, boot_id, version, join"""
    DATA_IDENTIFY = "data-identify"
    """challenge, host_id, session_id, pairing_seq"""
    STREAM_IDENTIFY = "stream-identify"
    """challenge, session_id, SHA-256 of the stream token"""
    DEVICE_LOGIN = "device-login"
    """challenge, device_id"""
    DEVICE_STEP_UP = "device-step-up"
    """challenge, device_id, purpose, host_id, profile, session_user"""
    INVITE_REDEEM = "invite-redeem"
    """hash of the invite code (``codes.py``), signing key, channel key, device name; of a browser, ``browser`` behind them"""
    PASSKEY_ADD = "passkey-add"
    """challenge, SHA-256 of the attestation object, name of the passkey"""
    PASSKEY_LOGIN = "passkey-login"
    """challenge, signing key, channel key, device name"""
    DEVICE_ASK = "device-ask"
    """signing key, channel key, device name: a new device asks to be let in by another one"""
    HOST_PAIR = "host-pair"
    """hash of the pairing code (``codes.py``), signing key, channel key"""
    JOIN_VALUE = "join-value"
    """host_id, pairing_seq, counter; signed by the server, the audience is ``server``"""


def canonical_origin(url: str) -> str:
    """``scheme://host[:port]`` in lower case, the default port dropped; ``ws`` and ``wss`` count as ``http`` and ``https``.

    Raises ``ValueError`` for anything that is no http(s) or ws(s) URL with a host.
    """
    parts = urlsplit(url)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme.lower(), parts.scheme.lower())
    if scheme not in _DEFAULT_PORTS or not parts.hostname or parts.username is not None:
        raise ValueError("an address like https://relay.example.com is needed")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = parts.port
    return f"{scheme}://{host}" if port in (None, _DEFAULT_PORTS[scheme]) else f"{scheme}://{host}:{port}"


def labelled(label: str, *fields: bytes | str) -> bytes:
    """A label with a u16 length, then fields with a u32 length each: no two lists of fields give the same bytes."""
    out = [struct.pack(">H", len(label)), label.encode("ascii")]
    for field in fields:
        raw = field.encode() if isinstance(field, str) else field
        out += (struct.pack(">I", len(raw)), raw)
    return b"".join(out)


def signed_bytes(purpose: Purpose, audience: str, *fields: bytes | str) -> bytes:
    """The exact bytes that a signature covers."""
    return labelled(f"bothy-{purpose.value}-v1", audience, *fields)


def sign(key: Ed25519PrivateKey, purpose: Purpose, audience: str, *fields: bytes | str) -> bytes:
    """Sign with an Ed25519 key; 64 bytes."""
    return key.sign(signed_bytes(purpose, audience, *fields))


def verify(public_key: bytes, signature: bytes, purpose: Purpose, audience: str, *fields: bytes | str) -> bool:
    """Whether the signature is this key's over exactly these fields. Never raises for a bad key or signature."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, signed_bytes(purpose, audience, *fields))
    except (InvalidSignature, ValueError):
        return False
    return True


def verify_any(
    public_key: bytes, signature: bytes, purpose: Purpose, audiences: Iterable[str], *fields: bytes | str
) -> bool:
    """Like :func:`verify`, for a server that is dialled under several audiences."""
    return any(verify(public_key, signature, purpose, audience, *fields) for audience in audiences)


def fingerprint(public_key: bytes) -> str:
    """How a key is shown to a person: ``SHA256:`` and unpadded base64, as ssh does."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(public_key).digest()).decode().rstrip("=")


def thumbprint(public_key: bytes) -> str:
    """How a token names a key (``cnf``): unpadded base64url of the SHA-256 of the raw key."""
    return base64.urlsafe_b64encode(hashlib.sha256(public_key).digest()).decode().rstrip("=")
