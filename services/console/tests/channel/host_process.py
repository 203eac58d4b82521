"""A host's end behind pipes, for the tests of the console: one JSON line in, one JSON line out.

``{"do": name, ...}`` is a call of :class:`Host`; the answer is ``{"gives", "frames"}``, with the frames that the host has to say
now. Bytes are hexadecimal. What the host keeps and how it answers is the shell of the wire's own tests.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_wire.channel import Accepted, Limits, noise
from bothy_wire.channel.handshake import encode_payload, prologue

WIRE_TESTS = Path(__file__).parents[3] / "wire" / "tests" / "channel"


class Host:
    """What the tests make of a host."""

    def __init__(self):
        self.key = X25519PrivateKey.generate()
        self.shell = None

    def start(self, **limits):
        """A new session with an honest host."""
        self.shell = runpy.run_path(str(WIRE_TESTS / "conftest.py"))["HostShell"](self.key, Limits(**limits))
        return self.key.public_key().public_bytes_raw().hex()

    def paired(self, now):
        self.shell.end.paired(now)

    def unpaired(self):
        self.shell.end.unpaired()

    def receive(self, message, now):
        self.shell.receive(bytes.fromhex(message), now)

    def print(self, data, now):
        self.shell.printed += bytes.fromhex(data)
        self.shell.send(now)

    def exit(self, status, now):
        self.shell.exit_status = status
        self.shell.send(now)

    def write(self, count, now):
        self.shell.write(count)
        self.shell.send(now)

    def forget(self, count):
        self.shell.held_from = max(0, len(self.shell.printed) - count)

    def state(self):
        end, shell = self.shell.end, self.shell
        return {
            "open": end.open,
            "arrived": (shell.pty + shell.unwritten).hex(),
            "unwritten": len(shell.unwritten),
            "printed": shell.printed.hex(),
            "in_flight": end.output_position - end.acknowledged,
            "exited": shell.exit_status is not None,
            "exit_acknowledged": end.exit_acknowledged,
            "resumes": shell.resumes,
        }

    def frames(self):
        return [] if self.shell is None else [message.hex() for message in self.shell.end.take_outgoing()]

    def peer(self, session_id, host_id, message1, **accepted):
        """A host that will say anything: message 2, and the keys of both directions."""
        responder = noise.Responder(self.key, prologue(UUID(session_id), UUID(host_id)))
        responder.read(bytes.fromhex(message1))
        answer = Accepted(**accepted | {"lineage": bytes.fromhex(accepted["lineage"])})
        message2 = responder.write(encode_payload(answer))
        to_host, to_device = noise._hkdf(responder._state._chaining_key, b"")
        return {"message2": message2.hex(), "to_device": to_device.hex(), "to_host": to_host.hex()}


def main():
    host = Host()
    for line in sys.stdin:
        call = json.loads(line)
        gives = getattr(host, call.pop("do"))(**call)
        sys.stdout.write(json.dumps({"gives": gives, "frames": host.frames()}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
