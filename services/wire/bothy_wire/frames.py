"""Text frames of the three sockets: one class each, one strict codec.

A frame is a JSON object with a ``type``. An unknown type, an unknown or missing field, a wrong type, a value outside its
bounds or a spelling of an id that is not canonical raises :class:`~bothy_wire.errors.FrameError`. Bytes fields travel as
base64. Times are seconds since the epoch of *cluster time* (``docs/spec/cluster.md``, C) as a float.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from bothy_wire.errors import FrameError
from bothy_wire.limits import NAME_BYTES
from bothy_wire.strict_json import StrictDecoder

Key = Annotated[bytes, Meta(min_length=32, max_length=32)]
Challenge = Annotated[bytes, Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, Meta(min_length=64, max_length=64)]
_PRINTABLE = r"\A[^\x00-\x1f\x7f-\x9f]+\Z"
"""No control character: a name ends up in a database, on a screen and in a log."""
Name = Annotated[str, Meta(min_length=1, max_length=NAME_BYTES, pattern=_PRINTABLE)]
Token = Annotated[str, Meta(min_length=1, max_length=4096)]
JoinValue = Annotated[str, Meta(min_length=1, max_length=256)]
Version = Annotated[int, Meta(ge=1, le=1_000_000)]
Seconds = Annotated[float, Meta(ge=0)]
Jwks = dict[str, Any]
CloseReason = Literal[
    "client_closed",
    "closed_by_owner",
    "process_exited",
    "open_failed",
    "idle",
    "max_duration",
    "detach_expired",
    "host_disabled",
    "host_retired",
    "host_repaired",
    "host_restarted",
    "host_lost",
    "revoked",
]
OpenFailure = Literal[
    "open_timeout",
    "start_timeout",
    "refused",
    "profile_unknown",
    "user_unknown",
    "local_confirm_denied",
    "spawn_failed",
]
EndReason = Literal[
    "process_exited",
    "idle",
    "max_duration",
    "detach_expired",
    "refused",
    "profile_unknown",
    "user_unknown",
    "local_confirm_denied",
    "spawn_failed",
]
"""Why a host says that a session ended: a close_reason of its own, or the close_detail of a failed opening."""
Phase = Literal["dialling", "confirming", "running"]


class Frame(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type"):
    """Root of all frames; carries the codec's rules."""


# ---- control connection: server to host ---------------------------------------------------------------------------


class HostHello(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.hello"):
    """First frame of a control connection; the host answers with :class:`HostIdentify`."""

    challenge: Challenge
    jwks: Jwks
    heartbeat_interval_s: Seconds
    miss_limit: Annotated[int, Meta(ge=1)]
    server_time: float
    protocol_min: Version
    protocol_max: Version


class HostLimits(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The server's limits of a session; a host applies the lower of these and its own."""

    idle_timeout_s: Seconds
    idle_grace_s: Seconds
    detach_grace_s: Seconds
    max_duration_s: Seconds


class HostIdentified(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.identified"):
    """The host is known here. ``join_offered`` is stored durably and returned in the next report."""

    conn_id: UUID
    pairing_seq: Annotated[int, Meta(ge=1)]
    join_offered: JoinValue
    limits: HostLimits


class HostPending(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.pending"):
    """The host is paired and waits, connected, for its owner's confirmation."""


class HostHeartbeatAck(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.heartbeat_ack"):
    """Answer to a heartbeat; sets the host's cluster time."""

    server_time: float


class HostSessionOpen(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.session.open"):
    """Dial ``data_path`` for this session. Repeated for a running session: dial again."""

    session_id: UUID
    data_path: Annotated[str, Meta(min_length=1, max_length=128)]
    profile: Name
    session_user: Name
    expires_at: float


class HostSessionClose(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.session.close"):
    """End this session now; nothing of it is waited for."""

    session_id: UUID
    reason: CloseReason


class HostSessionRecorded(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.session.recorded"):
    """The server committed what the host said of this session; the host stops repeating it."""

    session_id: UUID
    state: Literal["opening", "active", "detached", "closed"]


class HostKeys(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.keys"):
    """The server's public signing keys changed."""

    jwks: Jwks


# ---- control connection: host to server ---------------------------------------------------------------------------


class HostIdentify(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.identify"):
    """Proof of the host's key over the challenge (purpose ``host-identify``)."""

    host_id: UUID
    boot_id: UUID
    version: Version
    join: JoinValue
    signature: Signature


class ReportedSession(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One session as the host sees it."""

    session_id: UUID
    phase: Phase
    attached: bool


class HostReport(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.report"):
    """What the host offers and runs; from its receipt on the connection is *eligible*."""

    join: JoinValue
    profiles: Annotated[dict[Name, list[Name]], Meta(max_length=64)]
    """Profile name to the session users that it allows, by name or as ``@group``."""
    require_local_confirm: bool
    sessions: Annotated[list[ReportedSession], Meta(max_length=512)]
    os: Name
    arch: Name


class HostHeartbeat(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.heartbeat"):
    """The host is alive; sent every ``heartbeat_interval_s`` of the hello."""


class HostSessionStarted(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.session.started"):
    """The program runs. Repeated until recorded."""

    session_id: UUID


class HostSessionEnded(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="host.session.ended"):
    """The session is over on the host. Repeated until recorded."""

    session_id: UUID
    reason: EndReason
    exit_status: Annotated[int, Meta(ge=0, le=255)] | None = None


# ---- data connection ----------------------------------------------------------------------------------------------


class DataHello(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="data.hello"):
    """First frame of a data connection."""

    challenge: Challenge


class DataIdentify(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="data.identify"):
    """Proof of the host's key over the challenge (purpose ``data-identify``)."""

    host_id: UUID
    session_id: UUID
    signature: Signature


# ---- stream connection --------------------------------------------------------------------------------------------


class StreamHello(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="stream.hello"):
    """First frame of a stream connection."""

    challenge: Challenge


class StreamIdentify(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="stream.identify"):
    """Stream token and proof of the device's key over the challenge (purpose ``stream-identify``)."""

    stream_token: Token
    signature: Signature


# ---- both sides, after identify -----------------------------------------------------------------------------------


class SideAccepted(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="side.accepted"):
    """The side is admitted and counts as ready."""


class SidePaired(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="side.paired"):
    """The counterpart is here; binary frames pass from now on. The device gets the session token of this pairing."""

    session_token: Token | None = None


class SideUnpaired(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="side.unpaired"):
    """The counterpart went. Answer with exactly one :class:`SideReady`; binary before it is dropped."""


class SideReady(Frame, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="side.ready"):
    """The side forgot the old pairing and may be paired again."""


ServerControl = (
    HostHello
    | HostIdentified
    | HostPending
    | HostHeartbeatAck
    | HostSessionOpen
    | HostSessionClose
    | HostSessionRecorded
    | HostKeys
)
"""What a host receives on its control connection."""
HostControl = HostReport | HostHeartbeat | HostSessionStarted | HostSessionEnded
"""What a server receives on a control connection after :class:`HostIdentify`."""
ServerData = DataHello | SideAccepted | SidePaired | SideUnpaired
ServerStream = StreamHello | SideAccepted | SidePaired | SideUnpaired

_encoder = msgspec.json.Encoder()


def encode(frame: Frame) -> str:
    """The JSON text of a frame."""
    return _encoder.encode(frame).decode()


class _Nothing(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="nothing"):
    """Stands beside every frame that is expected, and is none."""


class Decoder:
    """Reads frames of the given types and no others.

    >>> Decoder(SideReady).decode('{"type":"side.ready"}')
    SideReady()
    """

    def __init__(self, *types: Any) -> None:
        """``types``: frame classes, or unions of them."""
        # Of a union the JSON library wants to see the type; of a single class it would take a frame without one.
        self._decoder = StrictDecoder(Union[(*types, _Nothing)])

    def decode(self, text: str | bytes) -> Any:
        """One frame. Raises :class:`FrameError` for everything else; the message never quotes the input."""
        try:
            frame = self._decoder.decode(text.encode() if isinstance(text, str) else text)
        except ValueError as error:
            raise FrameError("not a frame that is expected here") from error
        if isinstance(frame, _Nothing):
            raise FrameError("not a frame that is expected here")
        return frame
