"""HTTP listeners of a process: uvicorn as a part that is started and stopped like any other."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from bothy_server.platform.bounded_http import BoundedHttpProtocol, HttpBounds
from bothy_server.platform.setting_values import Address
from bothy_server.platform.uvicorn_takeover import TakeoverWebSocketProtocol


class ListenError(Exception):
    """An address cannot be bound or is not served any more; the message says which and why."""


@dataclass(frozen=True, slots=True)
class ListenLimits:
    """``message_bytes`` bounds a socket's messages, and the head of a request, until its endpoint raises the limit
    (``bothy.message_limit``) or the socket leaves ASGI. ``connections`` are open at once; a request arrives whole within
    ``request_timeout`` seconds. A socket whose endpoint ended takes what is written within ``linger`` seconds; at the end of
    the process open requests are waited for ``stop_linger`` seconds.
    """

    message_bytes: int
    connections: int
    request_timeout: float
    linger: float
    stop_linger: float


class Listener:
    """Serves ``app``; owned by the lifecycle, since a process whose listener died must not go on::

        listener = Listener(app, address, limits)
        parts.own("public_listener", listener.run())
        await listener.ready.wait()

    uvicorn's own pings, compression and signal handlers stay off: slow but living sockets are judged by our heartbeats,
    and the process leaves in an order of its own.
    """

    def __init__(self, app: ASGIApp, address: Address, limits: ListenLimits) -> None:
        """Binds the address. Raises :class:`ListenError`."""
        self._socket = _bound(address)
        self.address = Address(*self._socket.getsockname()[:2])
        """With the real port."""
        bounds = HttpBounds(limits.connections, limits.request_timeout, limits.message_bytes)
        self._server = _Server(
            uvicorn.Config(
                app,
                http=cast("type[asyncio.Protocol]", functools.partial(BoundedHttpProtocol, bounds)),
                ws=cast("type[asyncio.Protocol]", functools.partial(TakeoverWebSocketProtocol, limits.linger)),
                ws_max_size=limits.message_bytes,
                ws_per_message_deflate=False,
                ws_ping_interval=None,
                lifespan="off",
                log_config=None,
                log_level="warning",  # below it, uvicorn logs addresses and paths
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=max(1, round(limits.stop_linger)),
            )
        )
        self.ready = self._server.ready
        """Set when connections are accepted."""

    @property
    def connections(self) -> int:
        """Open connections, also those that only just came; sockets that left ASGI are not counted."""
        return len(self._server.server_state.connections)

    def refuse_new(self) -> None:
        """Refuse new connections from now on. Sockets stay, and a request under way is answered; then its connection ends."""
        self._server.refuse_new()

    async def run(self) -> None:
        """Serve until cancelled, then let open requests end. Raises :class:`ListenError` when serving ends by itself."""
        with self._socket:
            serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
            try:
                await asyncio.shield(serving)
            except asyncio.CancelledError:
                self._server.should_exit = True
                await serving
                raise
            except OSError as error:
                raise ListenError(f"{self.address} cannot be served: {error.strerror}") from error
        raise ListenError(f"{self.address} is not served any more")


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    def refuse_new(self) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            if isinstance(connection, BoundedHttpProtocol):
                connection.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise ListenError(f"{address} cannot be bound: {error.strerror}") from error
    return bound
