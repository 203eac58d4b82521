"""The control sockets of a node: admit and accept; the rest is one ``Connection`` each (``docs/spec/protocol.md``, Control)."""

from __future__ import annotations

from collections.abc import Callable

from starlette.websockets import WebSocket

from bothy_server.hosts.adapters.sockets.connection import Connection
from bothy_server.hosts.adapters.sockets.limits import ControlLimits
from bothy_server.hosts.app.control import Control
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.identify import Identify
from bothy_server.kernel.clock import Clock
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import HostKeys, Jwks
from bothy_wire.limits import CONTROL_SUBPROTOCOL


class ControlSockets:
    """Serves every control connection of the node."""

    def __init__(
        self,
        identify: Identify,
        control: Control,
        links: ControlLinks,
        clock: Clock,
        jwks: Callable[[], Jwks],
        limits: ControlLimits,
    ) -> None:
        """``jwks`` gives the published keys of the moment."""
        self._identify = identify
        self._control = control
        self._links = links
        self._clock = clock
        self._jwks = jwks
        self._limits = limits
        self._open: set[Connection] = set()

    @property
    def connections(self) -> int:
        """Control connections on this node, also those that are not identified yet."""
        return len(self._open)

    async def serve(self, websocket: WebSocket) -> None:
        """One connection from its handshake to its end."""
        if CONTROL_SUBPROTOCOL not in websocket.scope["subprotocols"]:
            await websocket.accept()
            await websocket.close(CloseCode.VERSION_UNSUPPORTED, f"subprotocol {CONTROL_SUBPROTOCOL} expected")
            return
        await websocket.accept(CONTROL_SUBPROTOCOL)
        connection = Connection(websocket, self._identify, self._control, self._links, self._clock, self._limits)
        self._open.add(connection)
        try:
            await connection.run(self._jwks())
        finally:
            self._open.discard(connection)

    def keys_changed(self) -> None:
        """Tell every host the published keys."""
        for connection in list(self._open):
            connection.send(HostKeys(jwks=self._jwks()))

    def dismiss(self, count: int, code: int, reason: str) -> None:
        """Close so many connections, of those that are not closed yet."""
        staying = [connection for connection in self._open if not connection.leaving]
        for connection in staying[:count]:
            connection.close(code, reason)

    def close_all(self, code: int, reason: str) -> None:
        """Close every connection; for the stop of the node."""
        for connection in list(self._open):
            connection.close(code, reason)
