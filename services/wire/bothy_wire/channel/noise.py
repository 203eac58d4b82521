"""``Noise_IK_25519_AESGCM_SHA256`` of the Noise Protocol Framework, revision 34, and nothing else of it.

::

    <- s
    ...
    -> e, es, s, ss      message 1: the device knows the host's static key
    <- e, ee, se         message 2

Section numbers below are those of the revision. Whatever does not open raises :class:`ChannelError` and leaves the state
as it was; a call in the wrong order raises :class:`LocalError`.
"""

from __future__ import annotations

import copy
import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bothy_wire.errors import ChannelError, LocalError
from bothy_wire.limits import KEY_BYTES

MESSAGE_BYTES = 65535
"""Section 3: most bytes of any Noise message."""
TAG_BYTES = 16

_PROTOCOL_NAME = b"Noise_IK_25519_AESGCM_SHA256"
_LAST_NONCE = 2**64 - 1
"""Section 5.1: never used for a message, only for REKEY."""


class CipherState:
    """One direction's key and nonce (section 5.1)."""

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)
        self.nonce = 0

    def encrypt(self, plaintext: bytes, associated: bytes = b"") -> bytes:
        """Seal under the next nonce, which is taken before anything can fail, so never twice."""
        nonce = self._next()
        self.nonce += 1
        return self._aead.encrypt(_nonce_bytes(nonce), plaintext, associated)

    def decrypt(self, ciphertext: bytes, associated: bytes = b"") -> bytes:
        """Open with the next nonce; a forgery does not use it up."""
        try:
            plaintext = self._aead.decrypt(_nonce_bytes(self._next()), ciphertext, associated)
        except InvalidTag as error:
            raise ChannelError("a message does not open") from error
        self.nonce += 1
        return plaintext

    def rekey(self) -> None:
        """Replace the key by a one-way function of it; the nonce goes on (section 4.2)."""
        self._aead = AESGCM(self._aead.encrypt(_nonce_bytes(_LAST_NONCE), bytes(KEY_BYTES), b"")[:KEY_BYTES])

    def _next(self) -> int:
        if self.nonce == _LAST_NONCE:
            raise ChannelError("the nonces of this key are used up")
        return self.nonce


class Initiator:
    """The end that writes message 1. ``ephemeral`` is given by test vectors only."""

    def __init__(
        self,
        static: X25519PrivateKey,
        remote_static: bytes,
        prologue: bytes,
        *,
        ephemeral: X25519PrivateKey | None = None,
    ) -> None:
        self._static = static
        self._remote_static = remote_static
        self._ephemeral = ephemeral or X25519PrivateKey.generate()
        self._state = _SymmetricState(prologue, remote_static)
        self._step = "write"

    def write(self, payload: bytes) -> bytes:
        """Message 1. Raises :class:`ChannelError` for a remote static key that is none."""
        self._step = _advance(self._step, "write", "read")
        state, ephemeral = self._state, self._ephemeral.public_key().public_bytes_raw()
        state.mix_hash(ephemeral)
        state.mix_key(_exchange(self._ephemeral, self._remote_static))
        static = state.encrypt_and_hash(self._static.public_key().public_bytes_raw())
        state.mix_key(_exchange(self._static, self._remote_static))
        return ephemeral + static + state.encrypt_and_hash(payload)

    def read(self, message: bytes) -> bytes:
        """The payload of message 2."""
        done = _advance(self._step, "read", "split")
        _check_length(message, KEY_BYTES + TAG_BYTES)
        # The copy is shallow: the cipher that both hold is replaced by mix_key before it is used again.
        state = copy.copy(self._state)
        remote_ephemeral = message[:KEY_BYTES]
        state.mix_hash(remote_ephemeral)
        state.mix_key(_exchange(self._ephemeral, remote_ephemeral))
        state.mix_key(_exchange(self._static, remote_ephemeral))
        payload = state.decrypt_and_hash(message[KEY_BYTES:])
        self._state, self._step = state, done
        return payload

    def split(self) -> tuple[CipherState, CipherState]:
        """The ciphers for sending and for receiving."""
        self._step = _advance(self._step, "split", "done")
        return self._state.split()


class Responder:
    """The end that reads message 1. ``ephemeral`` is given by test vectors only."""

    def __init__(self, static: X25519PrivateKey, prologue: bytes, *, ephemeral: X25519PrivateKey | None = None) -> None:
        self._static = static
        self._ephemeral = ephemeral or X25519PrivateKey.generate()
        self._state = _SymmetricState(prologue, static.public_key().public_bytes_raw())
        self._remote_ephemeral = b""
        self.remote_static = b""
        """The initiator's static key, proven by message 1."""
        self._step = "read"

    def read(self, message: bytes) -> bytes:
        """The payload of message 1."""
        done = _advance(self._step, "read", "write")
        _check_length(message, KEY_BYTES + KEY_BYTES + TAG_BYTES + TAG_BYTES)
        state = copy.copy(self._state)
        remote_ephemeral, rest = message[:KEY_BYTES], message[KEY_BYTES:]
        state.mix_hash(remote_ephemeral)
        state.mix_key(_exchange(self._static, remote_ephemeral))
        remote_static = state.decrypt_and_hash(rest[: KEY_BYTES + TAG_BYTES])
        state.mix_key(_exchange(self._static, remote_static))
        payload = state.decrypt_and_hash(rest[KEY_BYTES + TAG_BYTES :])
        self._remote_ephemeral, self.remote_static = remote_ephemeral, remote_static
        self._state, self._step = state, done
        return payload

    def write(self, payload: bytes) -> bytes:
        """Message 2."""
        self._step = _advance(self._step, "write", "split")
        state, ephemeral = self._state, self._ephemeral.public_key().public_bytes_raw()
        state.mix_hash(ephemeral)
        state.mix_key(_exchange(self._ephemeral, self._remote_ephemeral))
        state.mix_key(_exchange(self._ephemeral, self.remote_static))
        return ephemeral + state.encrypt_and_hash(payload)

    def split(self) -> tuple[CipherState, CipherState]:
        """The ciphers for sending and for receiving."""
        self._step = _advance(self._step, "split", "done")
        receive, send = self._state.split()
        return send, receive


class _SymmetricState:
    """Chaining key, transcript hash and the current handshake cipher (section 5.2)."""

    def __init__(self, prologue: bytes, responder_static: bytes) -> None:
        # Section 5.2: a name that fits a hash is padded with zeros instead of hashed.
        self._hash = self._chaining_key = _PROTOCOL_NAME.ljust(hashlib.sha256().digest_size, b"\0")
        self._cipher: CipherState | None = None
        self.mix_hash(prologue)
        self.mix_hash(responder_static)

    def mix_hash(self, data: bytes) -> None:
        self._hash = hashlib.sha256(self._hash + data).digest()

    def mix_key(self, secret: bytes) -> None:
        self._chaining_key, key = _hkdf(self._chaining_key, secret)
        self._cipher = CipherState(key)

    def encrypt_and_hash(self, plaintext: bytes) -> bytes:
        ciphertext = self._keyed.encrypt(plaintext, self._hash)
        self.mix_hash(ciphertext)
        return ciphertext

    def decrypt_and_hash(self, ciphertext: bytes) -> bytes:
        plaintext = self._keyed.decrypt(ciphertext, self._hash)
        self.mix_hash(ciphertext)
        return plaintext

    def split(self) -> tuple[CipherState, CipherState]:
        """The initiator's sending cipher, then the responder's."""
        first, second = _hkdf(self._chaining_key, b"")
        return CipherState(first), CipherState(second)

    @property
    def _keyed(self) -> CipherState:
        assert self._cipher is not None, "in IK every encryption follows a key exchange"
        return self._cipher


def _advance(step: str, expected: str, following: str) -> str:
    if step != expected:
        raise LocalError(f"the handshake expects {step}, not {expected}")
    return following


def _check_length(message: bytes, least: int) -> None:
    if not least <= len(message) <= MESSAGE_BYTES:
        raise ChannelError("a handshake message has no possible length")


def _exchange(private: X25519PrivateKey, public: bytes) -> bytes:
    """X25519. The library refuses an all-zero secret, which a peer gets by sending a point of low order."""
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError as error:
        raise ChannelError("a key of the handshake is none") from error


def _hkdf(chaining_key: bytes, secret: bytes) -> tuple[bytes, bytes]:
    """Section 4.3, with two outputs."""
    temporary = hmac.digest(chaining_key, secret, "sha256")
    first = hmac.digest(temporary, b"\x01", "sha256")
    return first, hmac.digest(temporary, first + b"\x02", "sha256")


def _nonce_bytes(nonce: int) -> bytes:
    """Section 12.4: 32 zero bits, then the nonce in big-endian order."""
    return nonce.to_bytes(12, "big")
