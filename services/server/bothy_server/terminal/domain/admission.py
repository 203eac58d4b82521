"""Who is on a stream or data socket, and whether that fits the row of the session (``docs/spec/cluster.md``, E2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from bothy_wire.ids import DeviceId, HostId


@dataclass(frozen=True, slots=True)
class DeviceIdentity:
    """A device that holds a stream token and proved its key. ``attach_seq`` is the token's, ``channel_key`` the row's."""

    device_id: DeviceId
    attach_seq: int
    channel_key: bytes

    def fits(self, host_id: HostId, device_id: DeviceId, attach_seq: int) -> bool:  # noqa: ARG002 - one shape for both
        """The row's own device, or one that held the session before: the rule tells that one it was replaced."""
        return self.device_id == device_id or self.attach_seq < attach_seq


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """A host that proved this key of this pairing."""

    host_id: HostId
    signing_key: bytes
    pairing_seq: int

    def fits(self, host_id: HostId, device_id: DeviceId, attach_seq: int) -> bool:  # noqa: ARG002 - one shape for both
        """The row's own host."""
        return self.host_id == host_id


Identity: TypeAlias = DeviceIdentity | HostIdentity
