"""WebSocket close codes, who sends them, and whether to come back (``docs/spec/close-codes.md`` is checked against this).

``retry`` answers one question for the program that received the code: dial again, when, and how.

- ``never``: stop; dialling again would be refused again or would take the session away from somebody.
- ``soon``: dial again after 0.2 to 1 s, jittered from the first try, doubling to ``host.backoff_cap`` or ``device.backoff_cap``.
- ``later``: dial again after 1 to 3 s, jittered, doubling to the same cap.
- ``attach``: ask for a new stream token first, with the steps of ``soon``.
- ``wait``: a host waits for the next ``host.session.open``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from bothy_wire.limits import CLOSE_REASON_BYTES

Retry = Literal["never", "soon", "later", "attach", "wait"]
Client = Literal["stream", "data", "control"]


class CloseCode(IntEnum):
    """Every close code that bothy sends or gives a meaning to."""

    NORMAL = 1000
    ABNORMAL = 1006
    TOO_LARGE = 1009
    INTERNAL = 1011
    RESTART = 1012
    BUSY = 1013
    SILENT = 4009
    SESSION_ENDED = 4100
    IDENTIFY_REFUSED = 4101
    HOST_UNAVAILABLE = 4102
    REPLACED = 4103
    IDENTIFY_TIMEOUT = 4104
    PROTOCOL_VIOLATION = 4105
    STALLED = 4106
    CHANNEL_FAILED = 4107
    RATE_LIMITED = 4108
    TOKEN_EXPIRED = 4109
    HOST_REPAIRED = 4110
    HOST_DISABLED = 4111
    DUPLICATE_CONNECTION = 4112
    VERSION_UNSUPPORTED = 4113


@dataclass(frozen=True, slots=True)
class Meaning:
    """One row of the table: the stable name, the retry of each kind of client, and the words for a person."""

    name: str
    stream: Retry
    data: Retry
    control: Retry
    text: str

    def retry(self, client: Client) -> Retry:
        """The retry meaning for one kind of client."""
        match client:
            case "stream":
                return self.stream
            case "data":
                return self.data
            case "control":
                return self.control


MEANINGS: dict[CloseCode, Meaning] = {
    CloseCode.NORMAL: Meaning("normal", "never", "soon", "soon", "the connection was closed"),
    CloseCode.ABNORMAL: Meaning("abnormal", "soon", "soon", "soon", "the connection was lost"),
    CloseCode.TOO_LARGE: Meaning("too_large", "attach", "soon", "soon", "a message was too large"),
    CloseCode.INTERNAL: Meaning("internal", "later", "later", "later", "the relay had an internal error"),
    CloseCode.RESTART: Meaning("restart", "soon", "soon", "soon", "the relay node is leaving"),
    CloseCode.BUSY: Meaning("busy", "later", "later", "later", "the relay is busy or cannot read its database"),
    CloseCode.SILENT: Meaning("silent", "soon", "soon", "soon", "the connection fell silent"),
    CloseCode.SESSION_ENDED: Meaning("session_ended", "never", "never", "never", "the session has ended"),
    CloseCode.IDENTIFY_REFUSED: Meaning(
        "identify_refused", "never", "never", "never", "the relay does not know this session or this key"
    ),
    CloseCode.HOST_UNAVAILABLE: Meaning(
        "terminal_host_unavailable", "attach", "wait", "never", "the other side did not arrive in time"
    ),
    CloseCode.REPLACED: Meaning("replaced", "never", "never", "never", "the session goes on on another device"),
    CloseCode.IDENTIFY_TIMEOUT: Meaning("identify_timeout", "soon", "never", "soon", "identification took too long"),
    CloseCode.PROTOCOL_VIOLATION: Meaning(
        "protocol_violation", "never", "never", "never", "the protocol was broken; update bothy on both ends"
    ),
    CloseCode.STALLED: Meaning("stalled", "attach", "soon", "soon", "the connection took no data for too long"),
    CloseCode.CHANNEL_FAILED: Meaning("channel_failed", "attach", "soon", "never", "the encrypted channel failed"),
    CloseCode.RATE_LIMITED: Meaning("rate_limited", "later", "later", "later", "too many attempts; wait a moment"),
    CloseCode.TOKEN_EXPIRED: Meaning("token_expired", "attach", "soon", "never", "the stream token has expired"),
    CloseCode.HOST_REPAIRED: Meaning("host_repaired", "never", "never", "never", "the host was paired again"),
    CloseCode.HOST_DISABLED: Meaning("host_disabled", "never", "never", "never", "the host is disabled or retired"),
    CloseCode.DUPLICATE_CONNECTION: Meaning(
        "duplicate_connection", "never", "never", "never", "a copy of this host is connected; pair it again"
    ),
    CloseCode.VERSION_UNSUPPORTED: Meaning(
        "version_unsupported", "never", "never", "never", "the relay does not support this protocol version"
    ),
}


def retry_of(code: int, client: Client) -> Retry:
    """The retry meaning of any code: an unknown 4xxx means never, an unknown 1xxx soon."""
    try:
        return MEANINGS[CloseCode(code)].retry(client)
    except ValueError:
        return "soon" if 1000 <= code < 2000 else "never"


def text_of(code: int) -> str:
    """One line for a person about any code."""
    try:
        return MEANINGS[CloseCode(code)].text
    except ValueError:
        return f"the connection was closed with code {code}"


def fit_reason(reason: str) -> str:
    """Cut a close reason to what a close frame holds, at a character border."""
    return reason.encode()[:CLOSE_REASON_BYTES].decode(errors="ignore")
