"""Positions and windows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The configuration of a channel end (keys ``channel.*``); windows must be the same at both ends."""

    handshake_timeout: float = 10.0
    """Seconds from the pairing to an open channel."""
    input_window: int = 64 * 1024
    """Bytes typed that the host has not yet written to the pseudo-terminal."""
    output_window: int = 256 * 1024
    """Bytes of output that the device's terminal has not yet taken."""
