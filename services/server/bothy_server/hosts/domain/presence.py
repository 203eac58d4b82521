"""Which hosts have a control connection somewhere, as one node knows it (``docs/spec/cluster.md``, V).

The view lives in memory and is made of what the other nodes say and what this node holds. Instants are steady seconds of
this node, given by the caller; ``now`` is never earlier than before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from bothy_wire.ids import ConnId, HostId


class Presence(StrEnum):
    """What a person is told about the connection of a host."""

    ONLINE = "online"
    LOST = "lost"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class PresenceLimits:
    """``terminal.host_heartbeat_interval`` in seconds and ``terminal.host_heartbeat_miss_limit``."""

    heartbeat_interval: float
    miss_limit: int

    @property
    def window(self) -> float:
        """Seconds that an entry counts after its last sign of life, inclusive."""
        return self.heartbeat_interval * self.miss_limit


@dataclass(slots=True)
class _Host:
    """Last signs of life per connection. ``gone`` remembers for a window what must not come back."""

    remote: dict[ConnId, float] = field(default_factory=dict)
    held: dict[ConnId, float] = field(default_factory=dict)
    gone: dict[ConnId, float] = field(default_factory=dict)


class PresenceView:
    """Entries by host and connection. Signals may come late, twice and out of order."""

    def __init__(self, limits: PresenceLimits) -> None:
        self._limits = limits
        self._hosts: dict[HostId, _Host] = {}
        self._stale_until = -inf
        self._swept_at = -inf

    def seen(self, host_id: HostId, conn_id: ConnId, now: float) -> bool:
        """Another node holds this connection. False, and ignored, for one that went or that this node holds."""
        host = self._hosts.setdefault(host_id, _Host())
        if conn_id in host.held or now <= host.gone.get(conn_id, -inf) + self._limits.window:
            return False
        host.remote[conn_id] = now
        return True

    def gone(self, host_id: HostId, conn_id: ConnId, now: float) -> bool:
        """The node that held it says that it went. Nobody else can say so of a connection that this node holds: False."""
        host = self._hosts.setdefault(host_id, _Host())
        if conn_id in host.held:
            return False
        host.remote.pop(conn_id, None)
        host.gone[conn_id] = now
        return True

    def held(self, host_id: HostId, conn_id: ConnId, now: float) -> None:
        """This node holds an eligible connection and just heard from it."""
        self._hosts.setdefault(host_id, _Host()).held[conn_id] = now

    def released(self, host_id: HostId, conn_id: ConnId, now: float) -> None:
        """This node holds it no longer."""
        host = self._hosts.setdefault(host_id, _Host())
        host.held.pop(conn_id, None)
        host.gone[conn_id] = now

    def connected(self, host_id: HostId, now: float) -> bool:
        """Whether an open or attach may be tried: a connection is held here, or a remote one counts."""
        return self.presence(host_id, now) is not Presence.OFFLINE

    def all(self, now: float) -> dict[HostId, Presence]:
        """The word of every host that is :meth:`connected`."""
        words = ((host_id, self.presence(host_id, now)) for host_id in self._hosts)
        return {host_id: word for host_id, word in words if word is not Presence.OFFLINE}

    def connected_hosts(self, now: float) -> int:
        """How many hosts are :meth:`connected`."""
        return sum(self.connected(host_id, now) for host_id in self._hosts)

    def presence(self, host_id: HostId, now: float) -> Presence:
        """The word for the host's connection. A connection held here is never offline."""
        host = self._hosts.get(host_id)
        if host is None:
            return Presence.OFFLINE
        counting = [*host.held.values(), *(at for at in host.remote.values() if self._counts(at, now))]
        if not counting:
            return Presence.OFFLINE
        return Presence.ONLINE if now - max(counting) <= 2 * self._limits.heartbeat_interval else Presence.LOST

    def deaf(self, now: float) -> None:
        """The node's listener is lost: nothing expires from here on, since no news is not bad news."""
        self._forget(now)
        self._stale_until = inf

    def hearing(self, now: float) -> None:
        """It is back: after one more interval every holder has spoken, and what is left unheard expires."""
        self._stale_until = now + self._limits.heartbeat_interval

    def stale(self, now: float) -> bool:
        """Whether the view may be older than it looks."""
        return now <= self._stale_until

    def sweep(self, now: float) -> None:
        """Forget what no longer counts, which bounds the memory. May be called often: works once a heartbeat interval."""
        if now - self._swept_at >= self._limits.heartbeat_interval:
            self._swept_at = now
            self._forget(now)

    def _forget(self, now: float) -> None:
        for host_id, host in list(self._hosts.items()):
            host.remote = {conn_id: at for conn_id, at in host.remote.items() if self._counts(at, now)}
            host.gone = {conn_id: at for conn_id, at in host.gone.items() if now - at <= self._limits.window}
            if not (host.remote or host.held or host.gone):
                del self._hosts[host_id]

    def _counts(self, at: float, now: float) -> bool:
        return now - at <= self._limits.window or self.stale(now)
