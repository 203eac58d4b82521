"""The pump: joins and parts two forwarders."""

from __future__ import annotations

from bothy_server.terminal.adapters.sockets.forwarder import StreamForwarder
from bothy_server.terminal.app.ports import SideLink


class StreamPump:
    """The :class:`Pump` of :class:`StreamForwarder`. It keeps nothing; a link of another kind is a fault of the wiring."""

    def join(self, one: SideLink, other: SideLink) -> None:
        """Let each forward to the other. When one is leaving already, the other is as if parted from it."""
        assert isinstance(one, StreamForwarder)
        assert isinstance(other, StreamForwarder)
        possible = not (one.is_leaving or other.is_leaving)
        for link, counterpart in ((one, other), (other, one)):
            if not link.is_leaving:
                link.follow(counterpart if possible else None)

    def part(self, one: SideLink, other: SideLink) -> None:
        """Stop the two from forwarding. Does nothing when they are not, or no longer, joined to each other."""
        assert isinstance(one, StreamForwarder)
        assert isinstance(other, StreamForwarder)
        if one.follows(other):
            one.part()
