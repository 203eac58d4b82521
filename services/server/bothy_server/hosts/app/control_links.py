"""The control connections on this node, by host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bothy_server.hosts.app.ports import ControlLink
from bothy_server.hosts.domain.duplicates import is_older
from bothy_wire.frames import Frame, HostSessionOpen
from bothy_wire.ids import ConnId, HostId, SessionId


class ControlLinks:
    """Every connection that named its host is entered before the host's row is read; so no change of the row is missed.

    Those that were admitted hear of one another. A late clean-up compares identity (``docs/spec/cluster.md``, E2a, D6).
    """

    def __init__(self) -> None:
        """Empty."""
        self._registered: defaultdict[HostId, set[ControlLink]] = defaultdict(set)
        self._admitted: defaultdict[HostId, dict[ConnId, ControlLink]] = defaultdict(dict)

    def register(self, link: ControlLink) -> None:
        """Enter a connection that has proved nothing yet. It is told when the row of the host it named changes."""
        self._registered[link.host_id].add(link)

    def admit(self, link: ControlLink) -> None:
        """It is the host's. Newer ones that have reported on this node may be news to it."""
        self._admitted[link.host_id][link.conn_id] = link
        for other in self._of(link.host_id):
            if other.eligible and other is not link:
                link.announced(other.conn_id)

    def unregister(self, link: ControlLink) -> None:
        """Remove exactly this connection, never a newer one; the others hear of it."""
        self._registered[link.host_id].discard(link)
        if not self._registered[link.host_id]:
            del self._registered[link.host_id]
        gone = [conn_id for conn_id, each in self._admitted.get(link.host_id, {}).items() if each is link]
        for conn_id in gone:
            del self._admitted[link.host_id][conn_id]
            self.gone(link.host_id, conn_id)
        if not self._admitted.get(link.host_id):
            self._admitted.pop(link.host_id, None)

    def __iter__(self) -> Iterator[ControlLink]:
        """The admitted links of all hosts; a copy, since they come and go meanwhile."""
        return iter([link for links in self._admitted.values() for link in links.values()])

    # ---- rows -----------------------------------------------------------------------------------------------------

    def judge_again(self, host_id: HostId) -> None:
        """The row of a host changed: every connection that named it reads it."""
        for link in list(self._registered.get(host_id, ())):
            link.judge_again()

    def judge_all_again(self) -> None:
        """Changes may have been missed."""
        for host_id in list(self._registered):
            self.judge_again(host_id)

    # ---- one another ----------------------------------------------------------------------------------------------

    def older(self, link: ControlLink) -> frozenset[ConnId]:
        """The older connections of its host on this node."""
        return frozenset(each.conn_id for each in self._of(link.host_id) if is_older(each.conn_id, link.conn_id))

    def announced(self, host_id: HostId, conn_id: ConnId) -> None:
        """A connection of the host has reported, here or elsewhere."""
        for link in self._of(host_id):
            link.announced(conn_id)

    def gone(self, host_id: HostId, conn_id: ConnId) -> None:
        """A connection of the host went, here or elsewhere."""
        for link in self._of(host_id):
            link.gone(conn_id)

    # ---- to the host ----------------------------------------------------------------------------------------------

    def has(self, host_id: HostId) -> bool:
        """Whether the host has a connection here."""
        return host_id in self._admitted

    def send(self, host_id: HostId, frame: Frame) -> bool:
        """Send to the host if it is here and eligible; whether it was. Its newest connection counts."""
        return _send([link for link in self._of(host_id) if link.eligible], frame)

    def dial(self, host_id: HostId, frame: HostSessionOpen) -> bool:
        """Send it: only where nothing speaks against the connection. Elsewhere it waits for that (D1, D4)."""
        sent = _send([link for link in self._of(host_id) if link.serving], frame)
        for link in () if sent else self._of(host_id):
            link.defer(SessionId(frame.session_id))
        return sent

    def _of(self, host_id: HostId) -> list[ControlLink]:
        return list(self._admitted.get(host_id, {}).values())


def _send(links: list[ControlLink], frame: Frame) -> bool:
    if links:
        max(links, key=lambda link: link.conn_id).send(frame)
    return bool(links)
