"""One conversation of a device's end with a host's end, call by call, with fixed keys: recorded, and played again.

A step is one call: ``{"end", "do", "with", "gives"}``, or ``"fails"`` with the close code in place of ``gives``. Frames stand once,
in ``frames``, and steps name their numbers. ``then`` is what the device says of itself afterwards, where that changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any
from unittest import mock
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_wire.channel import DeviceEnd, HostEnd, Limits
from bothy_wire.channel.device_events import DeviceEvent
from bothy_wire.errors import ChannelError

_TOLD = ("open", "opened_once", "pending_input", "unsent_input", "round_trip")
_BYTES = {"data", "lineage"}


class Conversation:
    """Both ends, and what was said. A new one is empty; ``facts`` of a recorded one give its keys."""

    def __init__(self, name: str, limits: Limits, device_key: str = "", host_key: str = "") -> None:
        self.facts: dict[str, Any] = {
            "name": name,
            "session_id": "01890a5d-ac96-774b-bcce-b302099a8057",
            "host_id": "01890a5d-ac97-7c0a-9f2e-1d2c3b4a5968",
            "profile": "shell",
            "session_user": "alex-shell",
            "term": "xterm-256color",
            "limits": asdict(limits),
            "device_key": device_key or _key("device"),
            "host_key": host_key or _key("host"),
            "ephemerals": {"device": [], "host": []},
            "frames": [],
            "steps": [],
        }
        self.host_key = _private(self.facts["host_key"])
        common: dict[str, Any] = {
            "session_id": UUID(self.facts["session_id"]),
            "host_id": UUID(self.facts["host_id"]),
            "limits": limits,
        }
        self.host = HostEnd(channel_key=self.host_key, **common)
        self.device = DeviceEnd(
            channel_key=_private(self.facts["device_key"]),
            host_channel_key=self.host_key.public_key().public_bytes_raw(),
            profile=self.facts["profile"],
            session_user=self.facts["session_user"],
            term=self.facts["term"],
            **common,
        )
        self._told: dict[str, Any] = {}

    def call(self, end: str, do: str, **arguments: Any) -> Any:
        """Make the call and write it down. What ``take_outgoing`` gives are numbers of frames; events are as in the file."""
        step: dict[str, Any] = {"end": end, "do": do}
        if arguments:
            step["with"] = {name: value.hex() if name in _BYTES else value for name, value in arguments.items()}
        if "message" in arguments:
            arguments["message"] = bytes.fromhex(self.facts["frames"][arguments["message"]])
        try:
            with self._fixed_chance(end):
                given = getattr(self.device if end == "device" else self.host, do)(**arguments)
        except ChannelError as error:
            step["fails"] = error.code
        else:
            match do:
                case "take_outgoing":
                    step["gives"] = [self.frame(message) for message in given]
                case "receive" if end == "device":
                    step["gives"] = [_written(event) for event in given]
                case "drop_unsent":
                    step["gives"] = given
        if end == "device" and (then := self._changes()):
            step["then"] = then
        self.facts["steps"].append(step)
        return step.get("gives", [])

    def frame(self, message: bytes) -> int:
        """The number of a frame that is new."""
        self.facts["frames"].append(message.hex())
        return len(self.facts["frames"]) - 1

    def _changes(self) -> dict[str, Any]:
        told = {name: getattr(self.device, name) for name in _TOLD}
        changed = {name: value for name, value in told.items() if self._told.get(name, ...) != value}
        self._told = told
        return changed

    @contextmanager
    def _fixed_chance(self, end: str) -> Iterator[None]:
        """Every handshake of this file has ephemeral keys of its own, which depend on nothing but their number."""
        made = self.facts["ephemerals"][end]

        def generate() -> X25519PrivateKey:
            made.append(_key(f"{self.facts['name']} {end} {len(made)}"))
            return _private(made[-1])

        with mock.patch.object(X25519PrivateKey, "generate", generate):
            yield


def played(recorded: dict[str, Any]) -> dict[str, Any]:
    """The facts of the same calls made anew; equal to the recorded ones unless an end behaves differently."""
    limits = Limits(**recorded["limits"])
    again = Conversation(recorded["name"], limits, recorded["device_key"], recorded["host_key"])
    for step in recorded["steps"]:
        arguments = dict(step.get("with", {}))
        for name in _BYTES & set(arguments):
            arguments[name] = bytes.fromhex(arguments[name])
        if "message" in arguments:
            # What nobody sent is in the file only: a forgery, or the words of a peer that is no end of ours.
            again.facts["frames"] += recorded["frames"][len(again.facts["frames"]) : arguments["message"] + 1]
        again.call(step["end"], step["do"], **arguments)
    return again.facts


def fixed_key(name: str) -> X25519PrivateKey:
    """A key of this name, the same each time."""
    return _private(_key(name))


def _written(event: DeviceEvent) -> dict[str, Any]:
    fields = {name: value.hex() if name in _BYTES else value for name, value in asdict(event).items()}
    return {"event": type(event).__name__, **fields}


def fixed_bytes(name: str) -> bytes:
    """32 bytes of this name, the same each time."""
    return hashlib.sha256(f"bothy channel vectors: {name}".encode()).digest()


def _key(name: str) -> str:
    """A private key of no use to anybody."""
    return fixed_bytes(name).hex()


def _private(text: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(text))
