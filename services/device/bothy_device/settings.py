"""``config.toml`` in the state folder: what a person may set, with its defaults. An unknown key is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from bothy_device.failure import Failure

Bytes = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class Device(Struct, frozen=True, forbid_unknown_fields=True):
    """``[device]``."""

    strict_host_keys: bool = False
    """Refuse a host whose key was not named before, instead of pinning it at first use."""
    paste_bytes: Bytes = 8 * 1024 * 1024
    """Typed or pasted bytes that may wait for the host; beyond it the keyboard is not read."""
    input_buffer_bytes: Bytes = 64 * 1024
    """Typed bytes that are kept while the host's connection is interrupted; beyond it the bell rings."""
    escape_char: Annotated[str, Meta(min_length=1, max_length=4)] = "~"
    """First character of the escape sequences: one ASCII character, or ``none``."""
    backoff_cap: Seconds = 15.0
    """Longest wait in seconds before another try to reconnect."""
    request_timeout: Seconds = 15.0
    """Seconds that one request to the server, or the dialling of a stream connection, may take."""


class Channel(Struct, frozen=True, forbid_unknown_fields=True):
    """``[channel]``; equal to the host's."""

    handshake_timeout: Seconds = 10.0
    """Seconds for the handshake with the host."""
    fail_grace: Seconds = 1.0
    """Seconds that a failed channel waits for the relay's word before it closes."""
    input_window: Bytes = 64 * 1024
    """Bytes under way to the host that it has not written to its terminal yet."""


class Wire(Struct, frozen=True, forbid_unknown_fields=True):
    """``[wire]``."""

    ping_interval: Seconds = 20.0
    """The relay is pinged this often."""
    ping_timeout: Seconds = 20.0
    """Seconds without a byte beyond that interval until the connection counts as lost."""
    max_frame_bytes: Bytes = 64 * 1024 + 256
    """Largest message from the relay."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    device: Device = Device()
    channel: Channel = Channel()
    wire: Wire = Wire()

    @property
    def escape(self) -> bytes:
        """The escape character as a byte; empty for none."""
        return b"" if self.device.escape_char == "none" else self.device.escape_char.encode()


def load(path: Path) -> Settings:
    """The settings of ``path``, or the defaults where there is no such file. Raises :class:`Failure`."""
    try:
        settings = msgspec.toml.decode(path.read_bytes(), type=Settings)
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: {error}") from error
    char = settings.device.escape_char
    if char != "none" and not (len(char) == 1 and char.isascii() and char.isprintable()):
        raise Failure(f"{path}: device.escape_char is one printable ASCII character, or none")
    return settings
