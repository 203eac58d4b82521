"""What a node does about the hosts' signals and about hosts in the event log."""

from __future__ import annotations

from collections.abc import Sequence

from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.domain.signals import HostClose, HostGone, HostPresent
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import Signal
from bothy_wire.ids import HostId


class HostSignals:
    """A link whose host changed reads its row and decides for itself; rows are the truth."""

    def __init__(self, links: ControlLinks, presence: Presence) -> None:
        """``links``: the control connections on this node."""
        self._links = links
        self._presence = presence

    async def handle(self, signals: Sequence[Signal]) -> None:
        """See the port ``SignalHandler``."""
        for signal in signals:
            match signal:
                case HostPresent(host_id, conn_id) if self._presence.heard(signal):
                    self._links.announced(host_id, conn_id)
                case HostGone(host_id, conn_id) if self._presence.heard(signal):
                    self._links.gone(host_id, conn_id)
                case HostClose(host_id):
                    self._links.judge_again(host_id)
                case _:
                    pass

    async def on_events(self, events: Sequence[LoggedEvent]) -> None:
        """New entries of the event log."""
        for event in (each.event for each in events):
            if event.type == "host.updated" and event.host_id is not None:
                self._links.judge_again(HostId(event.host_id))

    async def on_gap(self) -> None:
        """Signals or events were missed."""
        self._links.judge_all_again()
        self._presence.announce_all()
