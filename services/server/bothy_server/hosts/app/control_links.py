"""The control connections on this node, by host."""

from __future__ import annotations

from collections.abc import Iterator

from bothy_server.hosts.app.ports import ControlLink
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import Frame
from bothy_wire.ids import HostId


class ControlLinks:
    """One entry a host: the newest connection. A late clean-up compares identity (``docs/spec/cluster.md``, D6)."""

    def __init__(self) -> None:
        """Empty."""
        self._links: dict[HostId, ControlLink] = {}

    def register(self, link: ControlLink) -> None:
        """Enter a link, or keep it. An older one of the same host on this node is closed: the host dialled again."""
        older = self._links.get(link.host_id)
        self._links[link.host_id] = link
        if older is not None and older is not link:
            older.close(CloseCode.SILENT)

    def unregister(self, link: ControlLink) -> None:
        """Remove exactly this link, never a newer one."""
        if self._links.get(link.host_id) is link:
            del self._links[link.host_id]

    def __iter__(self) -> Iterator[ControlLink]:
        """A copy: links may come and go meanwhile."""
        return iter(list(self._links.values()))

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
