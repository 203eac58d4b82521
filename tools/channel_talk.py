"""A conversation for the channel's vectors, in the steps that all scenes have in common."""

from __future__ import annotations

from typing import Any

from bothy_wire.channel import Limits
from channel_recording import Conversation

_SMALL = Limits(input_window=16, output_window=1024, output_window_min=256, output_window_max=2048)


class Talk:
    """A conversation with the steps that all of them have in common. The clock moves by itself."""

    def __init__(self, name: str, limits: Limits = _SMALL) -> None:
        self.conversation = Conversation(name, limits)
        self.now = 0.0

    def device(self, do: str, **arguments: Any) -> Any:
        """A call of the device's end."""
        return self.conversation.call("device", do, **arguments)

    def host(self, do: str, **arguments: Any) -> Any:
        """A call of the host's end."""
        return self.conversation.call("host", do, **arguments)

    def tick(self) -> float:
        """A little later."""
        self.now += 0.125
        return self.now

    def meet(self, columns: int = 80, rows: int = 24) -> None:
        """A new pairing; message 1 arrives."""
        self.host("paired", now=self.tick())
        self.device("pair", session_token="header.claims.signature", columns=columns, rows=rows, now=self.now)
        self.to_host()

    def open(self, resume: str, lineage: bytes, output_position: int, columns: int = 80) -> None:
        """A new pairing, up to the device's first record and the host's."""
        self.meet(columns)
        self.host("accept", resume=resume, lineage=lineage, output_position=output_position, now=self.now)
        self.to_device()
        self.to_host()
        if resume != "exact":
            self.host("repaint", data=b"\x1b[H\x1b[2J$ ")
        self.to_device()

    def part(self) -> None:
        """The pairing ends; what is under way is lost."""
        self.host("unpaired")
        self.device("unpaired")

    def to_host(self) -> list[int]:
        """What the device has to say arrives."""
        numbers: list[int] = self.device("take_outgoing")
        for number in numbers:
            self.host("receive", message=number, now=self.tick())
        return numbers

    def to_device(self) -> list[int]:
        """What the host has to say arrives."""
        numbers: list[int] = self.host("take_outgoing")
        for number in numbers:
            self.device("receive", message=number, now=self.tick())
        return numbers

    def frame(self, number: int) -> bytes:
        """A frame that was sent."""
        return bytes.fromhex(self.conversation.facts["frames"][number])
