"""What a person confirms by a step-up: one kind of act, on one host where it is about a host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bothy_wire.ids import HostId

StepUpPurpose = Literal["open", "attach", "manage_host", "manage_relay", "manage_account"]
"""``manage_host``: who may enter a host, and its state. ``manage_relay``: an operator's acts about persons, their
devices, new hosts and nodes. ``manage_account``: a person's own devices and passkeys."""


@dataclass(frozen=True, slots=True)
class Act:
    """A confirmation of one act is worth nothing for another."""

    purpose: StepUpPurpose
    host_id: HostId | None = None
    profile: str | None = None
    session_user: str | None = None

    @property
    def complete(self) -> bool:
        """Whether it names exactly what its purpose is about."""
        of_terminal = self.profile is not None, self.session_user is not None
        match self.purpose:
            case "open" | "attach":
                return self.host_id is not None and all(of_terminal)
            case "manage_host":
                return self.host_id is not None and not any(of_terminal)
            case "manage_relay" | "manage_account":
                return self.host_id is None and not any(of_terminal)

    def fields(self) -> tuple[str, str, str, str]:
        """What a device signs of it; empty for what is not named."""
        host_id = "" if self.host_id is None else str(self.host_id)
        return self.purpose, host_id, self.profile or "", self.session_user or ""
