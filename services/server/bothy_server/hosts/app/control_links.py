"""The control connections on this node, by host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bothy_server.hosts.app.ports import ControlLink
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import Frame
from bothy_wire.ids import HostId


class ControlLinks:
    """Every connection that named its host is entered before the host's row is read; so no change of the row is missed.

    One of a host is *the* link: the newest that was admitted. A late clean-up compares identity (``docs/spec/cluster.md``,
    E2a, D6).
    """

    def __init__(self) -> None:
        """Empty."""
        self._registered: defaultdict[HostId, set[ControlLink]] = defaultdict(set)
        self._links: dict[HostId, ControlLink] = {}

    def register(self, link: ControlLink) -> None:
        """Enter a connection that has proved nothing yet. It is told when the row of the host it named changes."""
        self._registered[link.host_id].add(link)

    def admit(self, link: ControlLink) -> None:
        """It is the host's. An older one on this node is closed: the host dialled again."""
        older = self._links.get(link.host_id)
        self._links[link.host_id] = link
        if older is not None and older is not link:
            older.close(CloseCode.SILENT)

    def unregister(self, link: ControlLink) -> None:
        """Remove exactly this connection, never a newer one."""
        self._registered[link.host_id].discard(link)
        if not self._registered[link.host_id]:
            del self._registered[link.host_id]
        if self._links.get(link.host_id) is link:
            del self._links[link.host_id]

    def __iter__(self) -> Iterator[ControlLink]:
        """The links of all hosts; a copy, since they come and go meanwhile."""
        return iter(list(self._links.values()))

    def judge_again(self, host_id: HostId) -> None:
        """The row of a host changed: every connection that named it reads it."""
        for link in list(self._registered.get(host_id, ())):
            link.judge_again()

    def judge_all_again(self) -> None:
        """Changes may have been missed."""
        for host_id in list(self._registered):
            self.judge_again(host_id)

    def of(self, host_id: HostId) -> ControlLink | None:
        """The link of a host."""
        return self._links.get(host_id)

    def eligible(self, host_id: HostId) -> ControlLink | None:
        """The link of a host that may be told to open sessions."""
        link = self._links.get(host_id)
        return link if link is not None and link.eligible else None

    def send(self, host_id: HostId, frame: Frame) -> bool:
        """Send to the host if it is here and eligible; whether it was."""
        link = self.eligible(host_id)
        if link is not None:
            link.send(frame)
        return link is not None
