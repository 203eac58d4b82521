"""A process can be looked at before it is ready: its internal listener, and then the wait for the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette

from bothy_server import limits
from bothy_server.platform.health import Health, internal_app
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.patience import patiently
from bothy_server.platform.serving import Listener
from bothy_server.platform.setting_values import Address
from bothy_server.platform.telemetry import Metrics
from bothy_server.wiring.process import Foundation, reach


@dataclass(frozen=True, slots=True)
class InSight:
    """What the internal listener shows, and where. What is known later is added to ``app``."""

    health: Health
    app: Starlette
    address: Address


async def wait_in_sight(base: Foundation, parts: Lifecycle, metrics: Metrics) -> InSight:
    """The internal listener, and then the database: a process that waits for it is alive and says so."""
    health = Health(base.database, base.clock, base.settings.cluster.clock_warn)
    app, address = internal_app(health, metrics), base.settings.server.internal_listen
    listener = await serve(parts, "internal_listener", Listener(app, address, limits.http(base.settings)))
    await patiently_on(base, lambda: reach(base))
    return InSight(health, app, listener.address)


async def patiently_on(base: Foundation, act: Callable[[], Awaitable[None]]) -> None:
    """Do ``act`` when the database answers."""
    await patiently(act, base.clock, base.settings.database.listen_reconnect_backoff_cap)


async def serve(parts: Lifecycle, name: str, listener: Listener) -> Listener:
    """Serve; returns when connections are accepted."""
    parts.own(name, listener.run())
    await listener.ready.wait()
    return listener
