"""Which hosts are connected, on this node and on the others (``docs/spec/cluster.md``, V)."""

from __future__ import annotations

import asyncio

from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.ports import ControlLink, Signals
from bothy_server.hosts.domain import presence
from bothy_server.hosts.domain.signals import HostGone, HostPresent
from bothy_server.kernel.clock import Clock
from bothy_wire.ids import ConnId, HostId


class Presence:
    """Tells the other nodes of the eligible links here, and keeps what they tell."""

    def __init__(
        self,
        links: ControlLinks,
        signals: Signals,
        clock: Clock,
        limits: presence.PresenceLimits,
        flush_interval: float,
    ) -> None:
        """In ``single`` mode ``signals`` sends nothing and nothing is ever heard. ``flush_interval`` in seconds."""
        self._links = links
        self._signals = signals
        self._clock = clock
        self._view = presence.PresenceView(limits)
        self._flush_interval = flush_interval
        self._waiting: dict[ConnId, HostPresent] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Send what heartbeats say, as many as came within an interval at once, until cancelled (S6)."""
        while True:
            await self._wake.wait()
            await self._clock.sleep_until(self._clock.monotonic() + self._flush_interval)
            self._wake.clear()
            waiting, self._waiting = self._waiting, {}
            for signal in waiting.values():
                self._signals.send(signal)

    # ---- the links here -------------------------------------------------------------------------------------------

    def announce(self, link: ControlLink) -> None:
        """Tell at once that an eligible link is here."""
        self._view.held(link.host_id, link.conn_id, self._clock.monotonic())
        self._waiting.pop(link.conn_id, None)
        self._signals.send(HostPresent(link.host_id, link.conn_id))

    def announce_all(self) -> None:
        """Tell of every eligible link here: others may have missed it."""
        for link in self._links:
            if link.eligible:
                self.announce(link)

    def alive(self, link: ControlLink) -> None:
        """An eligible link here had a heartbeat; the others hear of it soon."""
        self._view.held(link.host_id, link.conn_id, self._clock.monotonic())
        self._waiting[link.conn_id] = HostPresent(link.host_id, link.conn_id)
        self._wake.set()
        self._view.sweep(self._clock.monotonic())

    def left(self, link: ControlLink) -> None:
        """A link that was eligible here is gone; nothing that waits may call it back."""
        self._view.released(link.host_id, link.conn_id, self._clock.monotonic())
        self._waiting.pop(link.conn_id, None)
        self._signals.send(HostGone(link.host_id, link.conn_id))

    # ---- what others tell -----------------------------------------------------------------------------------------

    def heard(self, signal: HostPresent | HostGone) -> bool:
        """Another node, or this one, told; whether it is news of a connection elsewhere."""
        host_id, conn_id = HostId(signal.host_id), ConnId(signal.conn_id)
        if isinstance(signal, HostPresent):
            return self._view.seen(host_id, conn_id, self._clock.monotonic())
        return self._view.gone(host_id, conn_id, self._clock.monotonic())

    def hearing(self, on: bool) -> None:
        """The node's listener was lost, or is back; while it is lost nothing expires."""
        if on:
            self._view.hearing(self._clock.monotonic())
        else:
            self._view.deaf(self._clock.monotonic())

    # ---- the view -------------------------------------------------------------------------------------------------

    def connected(self, host_id: HostId) -> bool:
        """Whether the host may be told to open a session, by this node or another one."""
        return self._view.connected(host_id, self._clock.monotonic())

    @property
    def connected_hosts(self) -> int:
        """How many hosts are."""
        return self._view.connected_hosts(self._clock.monotonic())

    def all(self) -> dict[HostId, presence.Presence]:
        """The word for a person of each of them."""
        return self._view.all(self._clock.monotonic())

    def of(self, host_id: HostId) -> presence.Presence:
        """The word for a person."""
        return self._view.presence(host_id, self._clock.monotonic())
