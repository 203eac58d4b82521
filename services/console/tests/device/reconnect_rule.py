"""The reconnect rule of Python, for the console's test: walks as JSON on standard input, what comes of each step on standard output."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from bothy_device import reconnect
from bothy_wire.backoff import Backoff


def walked(walk):
    """Every state and effect of one walk."""
    state = reconnect.start(walk["now"], walk["life"])
    for each in walk["steps"]:
        kind, fields = each["event"].pop("kind"), each["event"]
        event = getattr(reconnect, kind.capitalize())(**fields)
        state, effect = reconnect.step(state, event, each["now"], backoff=Backoff(), chance=each["chance"])
        told = asdict(state) | {"phase": state.phase.name.lower()}
        del told["once"]
        yield told, effect and {"kind": type(effect).__name__.lower(), **asdict(effect)}, reconnect.deadline(state)


sys.stdout.write(json.dumps([list(walked(walk)) for walk in json.load(sys.stdin)]))
