"""The limits of control connections."""

from __future__ import annotations

from dataclasses import dataclass

from bothy_server.hosts.domain import duplicates
from bothy_wire.frames import HostLimits


@dataclass(frozen=True, slots=True)
class ControlLimits:
    """Seconds, bytes and counts (keys ``wire.*``, ``terminal.*``, ``hosts.*``, ``database.retry_after``)."""

    identify_timeout: float
    max_frame_bytes: int
    heartbeat_interval: float
    miss_limit: int
    waiting_frames: int
    close_linger: float
    storage_retry: float
    host: HostLimits
    duplicates: duplicates.Limits
