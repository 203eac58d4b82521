"""The tokens that a node mints, as values (``docs/spec/protocol.md``, Tokens)."""

from __future__ import annotations

from dataclasses import dataclass

from bothy_wire.ids import DeviceId, HostId, PersonId, SessionId


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Lets a device use the REST API as its person."""

    person_id: PersonId
    device_id: DeviceId


@dataclass(frozen=True, slots=True)
class StreamToken:
    """Lets one device identify on the stream socket of one session, together with a signature over its challenge."""

    session_id: SessionId
    device_id: DeviceId
    attach_seq: int


@dataclass(frozen=True, slots=True)
class ProbeToken:
    """Lets the doctor see what a node saw of its request. ``hold_s``: seconds of silence that the answer shall have."""

    hold_s: float


@dataclass(frozen=True, slots=True)
class DrainToken:
    """Lets the command line ask the node on its machine to drain; it shows that the caller holds the key store."""


@dataclass(frozen=True, slots=True)
class SessionToken:
    """Presented to the host inside the handshake, once; worthless without the device's channel key."""

    session_id: SessionId
    host_id: HostId
    device_id: DeviceId
    profile: str
    session_user: str
    channel_thumbprint: str


Token = AccessToken | StreamToken | SessionToken | ProbeToken | DrainToken
