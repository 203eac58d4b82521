"""Constants of protocol version 1.

These numbers are part of the protocol: both ends must hold the same ones, so they are no configuration keys. What an
operator may choose (``wire.*``, ``terminal.*``, ``channel.*`` and so on) is a key; see ``docs/operations/configuration.md``.
"""

from __future__ import annotations

PROTOCOL_VERSION = 1

CONTROL_PATH = "/api/v1/hosts/connect"
"""Control connection: host service to any node."""
CONTROL_SUBPROTOCOL = "bothy.control.v1"
DATA_SUBPROTOCOL = "bothy.data.v1"
STREAM_SUBPROTOCOL = "bothy.stream.v1"


def data_path(session_id: object) -> str:
    """Path of the host's data connection of a session."""
    return f"/api/v1/hosts/sessions/{session_id}/stream"


def stream_path(session_id: object) -> str:
    """Path of the device's stream connection of a session."""
    return f"/api/v1/terminal/sessions/{session_id}/stream"


CHALLENGE_BYTES = 32
SIGNATURE_BYTES = 64
KEY_BYTES = 32

CLOSE_REASON_BYTES = 123
"""RFC 6455, 5.5.1: a control frame carries 125 bytes, two of them the code."""

RECORD_BYTES = 64 * 1024 - 64
"""Most plaintext bytes of one channel record, the type byte included."""
CHANNEL_MESSAGE_BYTES = 64 * 1024
"""Most bytes of one channel message: a record and its tag, or a handshake message."""
REKEY_RECORDS = 65_536
"""Each direction applies Noise REKEY after this many records."""
REPAINT_TOTAL_BYTES = 1024 * 1024
"""Most bytes of the repaint of one channel, all its records together. It needs no window, so this is what bounds it."""
OUTPUT_WINDOW_BYTES = 4 * 1024 * 1024
"""Most bytes of output in flight that a device takes; a host keeps to a window of its own below it."""
LINEAGE_BYTES = 16
SIZE_MIN, SIZE_MAX = 1, 1000
"""Columns and rows of a terminal."""

NAME_BYTES = 64
"""Profile names, session users, device and host names."""
TERM_BYTES = 64
