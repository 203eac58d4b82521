"""The parts of RFC 6455 that reading and writing share: opcodes, headers, the mask and the close payload."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum

from bothy_wire.close_codes import fit_reason

FIN = 0x80
RESERVED = 0x70
MASKED = 0x80

NO_STATUS = 1005
"""What RFC 6455, 7.1.5 calls a close frame without a code. Never on the wire."""


class Opcode(IntEnum):
    """RFC 6455, 5.2. Control frames are those with the high bit of four."""

    CONTINUATION = 0x0
    TEXT = 0x1
    BINARY = 0x2
    CLOSE = 0x8
    PING = 0x9
    PONG = 0xA


CONTROL_BIT = 0x8
CONTROL_BYTES = 125
"""The longest payload of a control frame, and the longest length that needs no extension."""


def header(first: int, length: int) -> bytes:
    """The header of an unmasked frame whose first byte (FIN and opcode) is ``first``, in the shortest form."""
    if length <= CONTROL_BYTES:
        return bytes((first, length))
    if length < 1 << 16:
        return b"%c\x7e%b" % (first, length.to_bytes(2, "big"))
    return b"%c\x7f%b" % (first, length.to_bytes(8, "big"))


def frame(opcode: Opcode, payload: bytes) -> bytes:
    """A whole unmasked frame."""
    return header(FIN | opcode, len(payload)) + payload


FINAL_CONTINUATION = frame(Opcode.CONTINUATION, b"")
"""Ends a fragmented message without adding to it."""


def close_payload(code: int, reason: str) -> bytes:
    """The payload of a close frame; a reason that does not fit is cut at a character border."""
    return code.to_bytes(2, "big") + fit_reason(reason).encode()


def close_code(payload: bytes) -> int:
    """The code of a received close payload. Raises ValueError when RFC 6455, 5.5.1 and 7.4 forbid the payload."""
    if not payload:
        return NO_STATUS
    code = int.from_bytes(payload[:2], "big")
    if len(payload) < 2 or not (1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999):
        raise ValueError("close code out of range")
    payload[2:].decode()  # a UnicodeDecodeError is a ValueError
    return code


def unmask_in_python(data: bytes, mask: bytes) -> bytes:
    """``data`` exclusive-or the repeated four bytes of ``mask``, as one sum over a large number."""
    size = len(data)
    repeated = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(repeated, "little")).to_bytes(size, "little")


unmask: Callable[[bytes, bytes], bytes] = unmask_in_python
with suppress(ImportError):  # an installation may lack the compiled part of websockets
    from websockets.speedups import apply_mask

    unmask = apply_mask
