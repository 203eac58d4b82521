"""Records: what travels in the open channel, one in each message.

A record is one type byte and a body of at most :data:`~bothy_wire.limits.RECORD_BYTES` together. Numbers are big-endian.

=======  ====  ==========  =======================================================
name     type  direction   body
=======  ====  ==========  =======================================================
DATA     0x01  both        1 or more bytes
ACK      0x02  both        u64 position processed
RESIZE   0x03  to host     u16 columns, u16 rows
EXIT     0x04  to device   u8 status
REPAINT  0x05  to device   u8 flag (1: last, 0: more follow), then any bytes
PING     0x06  to host     none
PONG     0x07  to device   none
NOTICE   0x08  to device   UTF-8 text of 1 to :data:`NOTICE_BYTES` bytes
=======  ====  ==========  =======================================================

An unknown type with the high bit set is ignored, any other fails the channel.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from bothy_wire.channel.noise import TAG_BYTES, CipherState
from bothy_wire.errors import ChannelError, LocalError
from bothy_wire.limits import RECORD_BYTES, REKEY_RECORDS

DATA_BYTES = RECORD_BYTES - 1
REPAINT_BYTES = RECORD_BYTES - 2
"""Most bytes of one piece."""
NOTICE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of the terminal, typed or printed."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Ack:
    """The position up to which the receiver processed the other direction."""

    position: int


@dataclass(frozen=True, slots=True)
class Resize:
    """The terminal's size, not checked yet."""

    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Exit:
    """The program ended; counts one output position."""

    status: int


@dataclass(frozen=True, slots=True)
class Repaint:
    """A piece of a repaint; counts in no position."""

    data: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class Ping:
    """Asks for a :class:`Pong`."""


@dataclass(frozen=True, slots=True)
class Pong:
    """Answers a :class:`Ping`."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for the person."""

    text: str


Record = Data | Ack | Resize | Exit | Repaint | Ping | Pong | Notice


class _Type(IntEnum):
    DATA = 0x01
    ACK = 0x02
    RESIZE = 0x03
    EXIT = 0x04
    REPAINT = 0x05
    PING = 0x06
    PONG = 0x07
    NOTICE = 0x08


_IGNORED = 0x80
"""The bit of a type that a peer of this version may skip."""


def encode_record(record: Record) -> bytes:
    """The plaintext of a record. Raises :class:`LocalError` for a value outside its bounds."""
    match record:
        case Data(data) if 0 < len(data) <= DATA_BYTES:
            return bytes((_Type.DATA,)) + data
        case Ack(position) if 0 <= position < 2**64:
            return _ACK.pack(_Type.ACK, position)
        case Resize(columns, rows) if 0 <= columns < 2**16 and 0 <= rows < 2**16:
            return _RESIZE.pack(_Type.RESIZE, columns, rows)
        case Exit(status) if 0 <= status < 2**8:
            return bytes((_Type.EXIT, status))
        case Repaint(data, last) if len(data) <= REPAINT_BYTES:
            return bytes((_Type.REPAINT, last)) + data
        case Ping():
            return bytes((_Type.PING,))
        case Pong():
            return bytes((_Type.PONG,))
        case Notice(text) if 0 < len(raw := text.encode()) <= NOTICE_BYTES:
            return bytes((_Type.NOTICE,)) + raw
    raise LocalError("a record is out of its bounds")


def decode_record(raw: bytes) -> Record | None:
    """Read one plaintext; ``None`` for a type to ignore. Raises :class:`ChannelError`."""
    if not 0 < len(raw) <= RECORD_BYTES:
        raise ChannelError("a record has no possible length")
    kind, body = raw[0], raw[1:]
    match kind:
        case _Type.DATA if body:
            return Data(body)
        case _Type.ACK if len(raw) == _ACK.size:
            return Ack(_ACK.unpack(raw)[1])
        case _Type.RESIZE if len(raw) == _RESIZE.size:
            return Resize(*_RESIZE.unpack(raw)[1:])
        case _Type.EXIT if len(body) == 1:
            return Exit(body[0])
        case _Type.REPAINT if body and body[0] <= 1:
            return Repaint(body[1:], last=body[0] == 1)
        case _Type.PING if not body:
            return Ping()
        case _Type.PONG if not body:
            return Pong()
        case _Type.NOTICE if 0 < len(body) <= NOTICE_BYTES:
            return Notice(_text(body))
        case _ if kind & _IGNORED:
            return None
    raise ChannelError("a record is unknown or malformed")


class Sealer:
    """Encrypts records of one direction; REKEY after every ``rekey_records`` of them."""

    def __init__(self, cipher: CipherState, rekey_records: int = REKEY_RECORDS) -> None:
        self._cipher = cipher
        self._rekey_records = rekey_records

    def seal(self, record: Record) -> bytes:
        """The channel message of a record; to be sent in the order of the calls."""
        message = self._cipher.encrypt(encode_record(record))
        _rekey_when_due(self._cipher, self._rekey_records)
        return message


class Opener:
    """Decrypts records of one direction, in order, with the same REKEY."""

    def __init__(self, cipher: CipherState, rekey_records: int = REKEY_RECORDS) -> None:
        self._cipher = cipher
        self._rekey_records = rekey_records

    def open(self, message: bytes) -> Record | None:
        """The record of a channel message; ``None`` for a type to ignore. Raises :class:`ChannelError`."""
        if len(message) > RECORD_BYTES + TAG_BYTES:
            raise ChannelError("a record has no possible length")
        raw = self._cipher.decrypt(message)
        _rekey_when_due(self._cipher, self._rekey_records)
        return decode_record(raw)


_ACK = struct.Struct(">BQ")
_RESIZE = struct.Struct(">BHH")


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ChannelError("a notice is no text") from error


def _rekey_when_due(cipher: CipherState, rekey_records: int) -> None:
    # The channel's nonces start at 0 and go on over a REKEY, so they count the records of the direction.
    if cipher.nonce % rekey_records == 0:
        cipher.rekey()
