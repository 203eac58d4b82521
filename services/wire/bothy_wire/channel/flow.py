"""Windows and positions: what one direction of the channel counts at each of its ends.

A position counts the bytes of a direction from its start: output per session (EXIT counts one), input per lineage.
The sending end keeps to a window over what the receiving end *settled* (its terminal took it, or it went into the
pseudo-terminal), so the receiving end never holds more than a window, however slow it settles.

Nothing here knows records or keys. A peer that breaks its window raises :class:`ChannelError`, our own caller that does
raises :class:`LocalError`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bothy_wire.errors import ChannelError, LocalError


@dataclass(frozen=True, slots=True)
class Limits:
    """The configuration of a channel end (keys ``channel.*``); the input window must be the same at both ends."""

    handshake_timeout: float = 10.0
    """Seconds from the pairing to an open channel."""
    input_window: int = 64 * 1024
    """Bytes typed that the host has not yet written to the pseudo-terminal."""
    output_window: int = 256 * 1024
    """Bytes of output that the device's terminal has not yet taken, at the start of a channel."""
    output_window_min: int = 16 * 1024
    output_window_max: int = 1024 * 1024
    """And what the host makes of it as it sees how fast they go; see :mod:`bothy_wire.channel.window`."""


class Departures:
    """The sending end of a direction."""

    def __init__(self) -> None:
        self.sent = 0
        """Position sent on this channel."""
        self.reached = 0
        """Highest position ever sent; a resume may go back behind it."""
        self.acknowledged = 0
        """Position that the peer settled."""

    @property
    def in_flight(self) -> int:
        """Bytes sent and not settled."""
        return self.sent - self.acknowledged

    def credit(self, window: int) -> int:
        """Bytes that may be sent now under ``window``; none while a larger one from before is in flight."""
        return max(0, window - self.in_flight)

    def send(self, count: int) -> None:
        """Count what goes out."""
        self.sent += count
        self.reached = max(self.reached, self.sent)

    def acknowledge(self, position: int) -> None:
        """The peer settled up to ``position``."""
        if not self.acknowledged <= position <= self.sent:
            raise ChannelError("an acknowledgement of what was not sent")
        self.acknowledged = position

    def resume(self, position: int) -> None:
        """Send again from ``position``; what the peer holds unsettled goes on counting against the window."""
        if not self.acknowledged <= position <= self.sent:
            raise ChannelError("the peer claims what was not sent")
        self.sent = position

    def restart(self, position: int) -> None:
        """Count anew from ``position``, with nothing in flight."""
        self.sent = self.acknowledged = position
        self.reached = max(self.reached, position)


class Arrivals:
    """The receiving end of a direction."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._arrived = 0  # on this channel; behind `received` while a resume repeats what came before
        self._foreign = 0  # handed out before the last restart and not settled yet
        self.received = 0
        """Position handed to the caller."""
        self.settled = 0
        """Position that the caller settled."""

    @property
    def acknowledgeable(self) -> int:
        """The position to acknowledge: settled, and sent on this channel."""
        return min(self.settled, self._arrived)

    def due(self, acknowledged: int) -> bool:
        """Whether an ACK is worth sending behind one of ``acknowledged``: all is settled, or a quarter of what waited."""
        progress = self.acknowledgeable - acknowledged
        return progress > 0 and (self.settled == self.received or 4 * progress >= self._arrived - acknowledged)

    def admit(self, count: int) -> None:
        """Refuse what the window does not hold; to be called before :meth:`arrive` for all that needs a window."""
        if self._arrived + count > self.settled + self._window:
            raise ChannelError("the peer broke its window")

    def arrive(self, count: int) -> int:
        """Count what came in; returns how many of these, the last ones, are new."""
        self._arrived += count
        new = max(0, self._arrived - self.received)
        self.received += new
        return new

    def settle(self, count: int) -> None:
        """The caller settled ``count`` more, in the order in which it received them."""
        if not 0 <= count <= self._foreign + self.received - self.settled:
            raise LocalError("more is settled than was received")
        foreign = min(count, self._foreign)
        self._foreign -= foreign
        self.settled += count - foreign

    def resume(self, position: int) -> None:
        """The peer sends again from ``position``, at most what was received."""
        self._arrived = position

    def restart(self, position: int) -> None:
        """Count anew from ``position``; what is not settled yet belongs to the old count and leaves this one alone."""
        self._foreign += self.received - self.settled
        self.received = self.settled = self._arrived = position
