"""Which hosts are connected, on this node and on the others (``docs/spec/cluster.md``, V)."""

from __future__ import annotations

from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.ports import ControlLink, Signals
from bothy_server.hosts.domain import presence
from bothy_server.hosts.domain.signals import HostGone, HostPresent
from bothy_server.kernel.clock import Clock
from bothy_wire.ids import ConnId, HostId


class Presence:
    """Tells the other nodes of the eligible links here, and keeps what they tell."""

    def __init__(self, links: ControlLinks, signals: Signals, clock: Clock, limits: presence.PresenceLimits) -> None:
        """In ``single`` mode ``signals`` sends nothing and nothing is ever heard."""
        self._links = links
        self._signals = signals
        self._clock = clock
        self._view = presence.PresenceView(limits)

    def connected(self, host_id: HostId) -> bool:
        """Whether the host may be told to open a session, by this node or another one."""
        return self._view.connected(host_id, self._clock.monotonic())

    def of(self, host_id: HostId) -> presence.Presence:
        """The word for a person."""
        return self._view.presence(host_id, self._clock.monotonic())

    def alive(self, link: ControlLink) -> None:
        """An eligible link here showed life: after its report and after each heartbeat."""
        self._view.held(link.host_id, link.conn_id, self._clock.monotonic())
        self._signals.send(HostPresent(link.host_id, link.conn_id))
        self._view.sweep(self._clock.monotonic())

    def left(self, link: ControlLink) -> None:
        """A link that was eligible here is gone."""
        self._view.released(link.host_id, link.conn_id, self._clock.monotonic())
        self._signals.send(HostGone(link.host_id, link.conn_id))

    def heard(self, signal: HostPresent | HostGone) -> None:
        """Another node, or this one, told."""
        host_id, conn_id = HostId(signal.host_id), ConnId(signal.conn_id)
        if isinstance(signal, HostPresent):
            self._view.seen(host_id, conn_id, self._clock.monotonic())
        else:
            self._view.gone(host_id, conn_id, self._clock.monotonic())

    def announce(self) -> None:
        """Tell of every eligible link here: others may have missed it."""
        for link in self._links:
            if link.eligible:
                self._signals.send(HostPresent(link.host_id, link.conn_id))

    def hearing(self, on: bool) -> None:
        """The node's listener was lost, or is back; while it is lost nothing expires."""
        if on:
            self._view.hearing(self._clock.monotonic())
        else:
            self._view.deaf(self._clock.monotonic())
