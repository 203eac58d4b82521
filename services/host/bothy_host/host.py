"""What every session and the control connection share on one host."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from bothy_host.clock import ClusterClock
from bothy_host.dial import Manner
from bothy_host.lifetime import Bounds
from bothy_host.screen import MakeScreen
from bothy_host.settings import Settings
from bothy_host.state import Pairing
from bothy_host.tokens import TokenDesk
from bothy_wire.frames import HostLimits


@dataclass
class Host:
    """One paired host. ``bounds`` holds the lower of the server's limits and its own."""

    settings: Settings
    pairing: Pairing
    tokens: TokenDesk
    tls: ssl.SSLContext
    make_screen: MakeScreen
    clock: ClusterClock = field(default_factory=ClusterClock)
    bounds: Bounds = field(init=False)

    def __post_init__(self) -> None:
        self.bounds = self._own_bounds

    def take_limits(self, limits: HostLimits) -> None:
        """The server named its limits of a session."""
        self.bounds = self._own_bounds.lower(
            Bounds(
                idle_timeout=limits.idle_timeout_s,
                idle_grace=limits.idle_grace_s,
                detach_grace=limits.detach_grace_s,
                max_duration=limits.max_duration_s,
            )
        )

    @property
    def manner(self) -> Manner:
        """How its connections behave."""
        return self.settings.host.manner()

    @property
    def authorized_devices(self) -> Path | None:
        """The file of admitted devices, when the operator keeps one."""
        return None if self.settings.authorized_devices is None else Path(self.settings.authorized_devices)

    @property
    def _own_bounds(self) -> Bounds:
        own = self.settings.host
        return Bounds(
            idle_timeout=own.idle_timeout,
            idle_grace=own.idle_grace,
            detach_grace=own.detach_grace,
            max_duration=own.max_duration,
        )
