"""Conversations of both channel ends for other implementations: ``python tools/channel_vectors.py`` writes the vectors.

``--check`` fails when they are stale. What a conversation consists of, and how it is played again: ``channel_recording.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import channel_forgeries
import channel_scenes
from api_page import write_or_check
from bothy_wire.channel import records
from bothy_wire.channel.noise import CipherState
from bothy_wire.channel.records import Sealer
from bothy_wire.limits import REKEY_RECORDS
from channel_recording import fixed_bytes
from channel_talk import Talk

PAGE = Path("docs/spec/vectors/channel.json")
_ABOUT = (
    "Whole conversations of a device's end with a host's end. Bytes are hexadecimal, numbers of frames point into `frames`. "
    "Play the steps of your end in order: make the call `do` with `with`, and expect `gives`, or the error with the close code "
    "`fails`; `then` is what the device says of itself afterwards. Its ephemeral keys are `ephemerals`, in the order of the "
    "handshakes. Times are seconds. The private keys are of no use to anybody. `rekey` is one direction around its first REKEY: from the record with the nonce "
    "`first` on, DATA of one byte each, which counts from 0."
)
_SCENES = channel_scenes.SCENES | channel_forgeries.SCENES


def _recorded(name: str) -> dict[str, Any]:
    talk = Talk(name)
    _SCENES[name](talk)
    return talk.conversation.facts


def _rekey() -> dict[str, Any]:
    key, first = fixed_bytes("rekey"), REKEY_RECORDS - 4
    cipher = CipherState(key)
    cipher.nonce = first
    sealer = Sealer(cipher)
    frames = [sealer.seal(records.Data(bytes([number]))).hex() for number in range(8)]
    return {"key": key.hex(), "first": first, "frames": frames}


def document() -> str:
    """The file's content: one line for each step and frame, so that a change can be read."""
    return _lines({"about": _ABOUT, "rekey": _rekey(), "conversations": list(map(_recorded, _SCENES))}) + "\n"


def _lines(value: Any, indent: int = 0) -> str:
    """JSON that breaks the lines of the outer structures only."""
    inside, flat = " " * (indent + 1), json.dumps(value)
    if len(flat) <= _LINE or indent > _DEPTH:
        return flat
    match value:
        case dict():
            parts = [f"{inside}{json.dumps(name)}: {_lines(each, indent + 1)}" for name, each in value.items()]
            return "{\n" + ",\n".join(parts) + f"\n{' ' * indent}}}"
        case list():
            return "[\n" + ",\n".join(inside + _lines(each, indent + 1) for each in value) + f"\n{' ' * indent}]"
        case _:
            return flat


_LINE, _DEPTH = 100, 3


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, document))
