"""Codes that a person carries from one screen to another: invites, pairing codes, user codes.

Random bits in Crockford's base32, in groups so that they can be read aloud. Invites and pairing codes open something by
themselves and have 120 bits; a user code is typed by somebody who is signed in, and has 40. Both ends sign for, and the
server stores, the hash of the one normal form; a reader of the database cannot use it.
"""

from __future__ import annotations

import hashlib
from typing import Final

CODE_BYTES = 15
USER_CODE_BYTES = 5
ALREADY_ISSUED: Final = "already_issued"
"""Stands in a code's place in the answer to a repeated request: a code is shown once."""

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_READ_AS = str.maketrans({"I": "1", "L": "1", "O": "0", "-": None, " ": None})


def format_code(random: bytes) -> str:
    """The code for :data:`CODE_BYTES` random bytes, in groups of five."""
    return _grouped(random, 5)


def format_user_code(random: bytes) -> str:
    """The code for :data:`USER_CODE_BYTES` random bytes, in groups of four."""
    return _grouped(random, 4)


def _grouped(random: bytes, size: int) -> str:
    value = int.from_bytes(random, "big")
    digits = "".join(_ALPHABET[value >> 5 * each & 31] for each in reversed(range(len(random) * 8 // 5)))
    return "-".join(digits[at : at + size] for at in range(0, len(digits), size))


def normal_code(typed: str) -> str:
    """What a person typed without case, dashes and look-alikes; a normal form stays as it is.

    >>> normal_code(" 7qk3m-o1lil ")
    '7QK3M01111'
    """
    return typed.strip().upper().translate(_READ_AS)


def code_hash(typed: str) -> bytes:
    """SHA-256 of the normal form; 32 bytes."""
    return hashlib.sha256(normal_code(typed).encode()).digest()
