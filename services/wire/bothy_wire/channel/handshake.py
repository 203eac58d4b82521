"""What the two handshake messages say, and what they are bound to.

The handshake itself is Noise IK (:mod:`bothy_wire.channel.noise`). Its payloads are JSON objects, strict like the text
frames: an unknown field or a value outside its bounds is refused. Bytes travel as base64.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from bothy_wire.errors import ChannelError
from bothy_wire.frames import Name, Token
from bothy_wire.limits import LINEAGE_BYTES, TERM_BYTES
from bothy_wire.signing import labelled
from bothy_wire.strict_json import StrictDecoder

Resume = Literal["new", "repaint", "exact"]
"""How a session goes on over a new pairing (``docs/spec/protocol.md``, Resume)."""
RefusalCode = Literal[
    "token_expired",
    "token_replayed",
    "token_invalid",
    "device_not_authorized",
    "profile_mismatch",
    "session_unknown",
    "size_invalid",
]
Lineage = Annotated[bytes, Meta(min_length=LINEAGE_BYTES, max_length=LINEAGE_BYTES)]
Position = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Message1(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the device asks for. It can be replayed and has no forward secrecy, so it holds nothing else.

    The size is any integer here; the host refuses a bad one with ``size_invalid``.
    """

    token: Token
    profile: Name
    session_user: Name
    columns: int
    rows: int
    term: Annotated[str, Meta(min_length=1, max_length=TERM_BYTES)]
    lineage: Lineage | None
    """The input lineage that the device holds; none at first."""
    output_processed: Position
    input_sent: Position


class Accepted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="accepted"):
    """The host's yes: where output starts on this channel, and how much input of the lineage it holds."""

    resume: Resume
    lineage: Lineage
    output_position: Position
    input_received: Position


class Refused(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="refused"):
    """The host's no; the device leaves and acts on the code."""

    code: RefusalCode


Message2 = Accepted | Refused


def prologue(session_id: UUID, host_id: UUID) -> bytes:
    """What both ends must agree on before the first key: a handshake of another session or host does not open."""
    return labelled("bothy-channel-v1", str(session_id), str(host_id))


def encode_payload(payload: Message1 | Message2) -> bytes:
    """The JSON bytes of a payload."""
    return msgspec.json.encode(payload)


def decode_message1(raw: bytes) -> Message1:
    """Read the payload of message 1. Raises :class:`ChannelError`; the message never quotes the input."""
    message1: Message1 = _decode(_message1, raw)
    return message1


def decode_message2(raw: bytes) -> Message2:
    """Read the payload of message 2. Raises :class:`ChannelError`; the message never quotes the input."""
    message2: Message2 = _decode(_message2, raw)
    return message2


_message1 = StrictDecoder(Message1)
_message2 = StrictDecoder(Message2)


def _decode(decoder: StrictDecoder, raw: bytes) -> Any:
    try:
        return decoder.decode(raw)
    except ValueError as error:
        raise ChannelError("a handshake payload that is not expected here") from error
