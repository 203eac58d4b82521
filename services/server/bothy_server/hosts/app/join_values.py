"""Join values on the wire: a counter with the server's signature, so that nobody but the server can raise it."""

from __future__ import annotations

import base64
import binascii

from bothy_server.identity.app.api import Tokens
from bothy_wire.ids import HostId
from bothy_wire.signing import Purpose, signed_bytes

_AUDIENCE = "server"


def offer(tokens: Tokens, host_id: HostId, pairing_seq: int, counter: int) -> str:
    """``<counter>.<kid>.<signature>``."""
    kid, signature = tokens.sign(_signed(host_id, pairing_seq, counter))
    return f"{counter}.{kid}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def read(tokens: Tokens, host_id: HostId, pairing_seq: int, value: str) -> int | None:
    """The counter, or None for a value that this server never signed for this pairing."""
    try:
        digits, kid, encoded = value.split(".")
        counter = int(digits)
        signature = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except (ValueError, binascii.Error):
        return None
    return counter if tokens.verify(kid, _signed(host_id, pairing_seq, counter), signature) else None


def _signed(host_id: HostId, pairing_seq: int, counter: int) -> bytes:
    return signed_bytes(Purpose.JOIN_VALUE, _AUDIENCE, str(host_id), str(pairing_seq), str(counter))
