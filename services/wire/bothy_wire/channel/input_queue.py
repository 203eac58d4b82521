"""What was typed and is not acknowledged yet: the device's side of the input direction.

Bytes stay here until the host says that they are in the pseudo-terminal, so that a resume can send again what was lost.
"""

from __future__ import annotations

from bothy_wire.channel.flow import Departures


class InputQueue:
    """Typed bytes in order; the first ones are sent, the rest waits for the window or for a channel."""

    def __init__(self, window: int) -> None:
        self._typed = bytearray()  # its first byte stands at position `_counts.acknowledged`
        self._window = window
        self._counts = Departures()

    @property
    def pending(self) -> int:
        """Bytes not acknowledged, sent or not."""
        return len(self._typed)

    @property
    def unsent(self) -> int:
        """Bytes not sent yet."""
        return len(self._typed) - self._counts.in_flight

    @property
    def sent(self) -> int:
        """Position sent, counted from the start of the lineage."""
        return self._counts.sent

    def write(self, data: bytes) -> None:
        """Queue what was typed."""
        self._typed += data

    def take(self, most: int) -> bytes:
        """The next bytes to send, at most ``most`` and as many as the window allows; they count as sent."""
        start = self._counts.in_flight
        data = bytes(self._typed[start : start + min(most, self._counts.credit(self._window))])
        self._counts.send(len(data))
        return data

    def acknowledge(self, position: int) -> None:
        """The host wrote up to ``position``. Raises :class:`ChannelError` when that was never sent."""
        before = self._counts.acknowledged
        self._counts.acknowledge(position)
        del self._typed[: position - before]

    def drop_unsent(self) -> int:
        """Forget what was not sent; returns how many bytes."""
        dropped = self.unsent
        del self._typed[self._counts.in_flight :]
        return dropped

    def resume(self, received: int) -> None:
        """A new channel of the same lineage: send again from what the host received, else :class:`ChannelError`."""
        self._counts.resume(received)

    def restart(self, *, keep: bool) -> int:
        """A new lineage. What was typed for the old one is dropped unless ``keep``; returns how many bytes."""
        dropped = 0 if keep else len(self._typed)
        del self._typed[:dropped]
        self._counts.restart(0)
        return dropped
