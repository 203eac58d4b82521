"""HTTP listeners of a process: uvicorn as a part that is started and stopped like any other."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from bothy_server.platform.setting_values import Address
from bothy_server.platform.uvicorn_takeover import TakeoverHttpProtocol, TakeoverWebSocketProtocol


class ListenError(Exception):
    """An address cannot be bound; the message says which and why."""


@asynccontextmanager
async def listening(app: ASGIApp, address: Address, max_message_bytes: int, linger: float) -> AsyncIterator[Address]:
    """Serve ``app``; gives the address with the real port.

    ``max_message_bytes`` bounds a socket's messages until its endpoint raises the limit (``bothy.message_limit``) or the
    socket leaves ASGI. ``linger`` in seconds bounds the wait for open requests at the end.

    uvicorn's own pings, compression and signal handlers stay off: slow but living sockets are judged by our heartbeats,
    and the process leaves in an order of its own.
    """
    with _bound(address) as bound:
        config = uvicorn.Config(
            app,
            http=TakeoverHttpProtocol,
            ws=TakeoverWebSocketProtocol,
            ws_max_size=max_message_bytes,
            ws_per_message_deflate=False,
            ws_ping_interval=None,
            lifespan="off",
            log_config=None,
            log_level="warning",  # below it, uvicorn logs addresses and paths
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=max(1, round(linger)),
        )
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[bound]), name=f"listener {address}")
        try:
            await server.ready.wait()
            host, port = bound.getsockname()[:2]
            yield Address(host, port)
        finally:
            server.should_exit = True
            await serving


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def _bound(address: Address) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((address.host, address.port))
        except OSError as error:
            raise ListenError(f"{address} cannot be bound: {error.strerror}") from error
        yield bound
