"""How a node leaves: what its drain does to its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bothy_server.cluster.app.node_registry import NodeRegistry
from bothy_server.cluster.domain.drain import Left
from bothy_server.events.app.feeds import Feeds
from bothy_server.hosts.adapters.sockets.control import ControlSockets
from bothy_server.identity.adapters.keystore.store import KeyStoreError
from bothy_server.identity.app.ports import TokenInvalid
from bothy_server.identity.domain.tokens import DrainToken
from bothy_server.platform.health import Health
from bothy_server.platform.serving import Listener
from bothy_server.platform.settings import Settings
from bothy_server.terminal.app.sweep import Sweep
from bothy_server.terminal.app.switchboard import Switchboard
from bothy_server.wiring.shared_use_cases import tokens_of_this_machine
from bothy_wire.close_codes import CloseCode

REASON = "the node is leaving"


def may_drain(settings: Settings, token: str) -> bool:
    """Whether whoever shows ``token`` holds the key store. Reads it: not for the event loop."""
    try:
        tokens_of_this_machine(settings).read(DrainToken, token)
    except (KeyStoreError, TokenInvalid):
        return False
    return True


@dataclass(frozen=True, slots=True)
class NodeLeaving:
    """Implements the drain's port ``Leaving``. ``sweep`` is there in role ``all``; ``stop`` ends the process."""

    health: Health
    registry: NodeRegistry
    listener: Listener
    control_sockets: ControlSockets
    switchboard: Switchboard
    feeds: Feeds
    sweep: Sweep | None
    stop: Callable[[], None]

    def turn_away(self) -> None:
        """See the port."""
        self.health.drain()
        self.registry.drain()
        self.switchboard.drain()
        self.feeds.drain()
        if self.sweep is not None:
            self.sweep.halt()

    def close_listener(self) -> None:
        """See the port."""
        self.listener.refuse_new()

    def close_controls(self, count: int) -> None:
        """See the port."""
        self.control_sockets.dismiss(count, CloseCode.RESTART, REASON)

    def close_sides(self, pairs: int) -> None:
        """See the port."""
        self.switchboard.dismiss(pairs, CloseCode.RESTART, REASON)

    def exit(self) -> None:
        """See the port."""
        self.stop()

    def left(self) -> Left:
        """See the port."""
        controls = self.control_sockets.connections
        return Left(controls, self.switchboard.sides, self.listener.connections - controls)
