"""What a node is made of, and the order of its start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from bothy_server import limits
from bothy_server.cluster.adapters.http.drain import drain_route
from bothy_server.cluster.app.drain import Drain
from bothy_server.cluster.app.drain_orders import DrainOrders
from bothy_server.cluster.domain.node import HeldKeys
from bothy_server.hosts.adapters.sockets.control import ControlSockets
from bothy_server.hosts.app.control import Control
from bothy_server.hosts.app.identify import Identify
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.app.verdict import Verdict
from bothy_server.identity.adapters.keystore.keeper import KeyKeeper
from bothy_server.kernel.ids import new_id
from bothy_server.platform.health import Health
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.serving import Listener
from bothy_server.platform.setting_values import Address
from bothy_server.platform.settings import Settings
from bothy_server.platform.telemetry import Metrics
from bothy_server.terminal.adapters.sockets.side import SideSockets
from bothy_server.terminal.app.admission import Admission
from bothy_server.terminal.app.switchboard import Switchboard
from bothy_server.wiring import figures, shared_use_cases
from bothy_server.wiring.core import Core, hear, node_core
from bothy_server.wiring.in_sight import serve, wait_in_sight
from bothy_server.wiring.leaving import REASON, NodeLeaving, may_drain
from bothy_server.wiring.membership import enter, registry, this_process
from bothy_server.wiring.process import foundation
from bothy_server.wiring.public_app import public_app
from bothy_server.wiring.worker import sweep
from bothy_wire.close_codes import CloseCode
from bothy_wire.ids import NodeId


@dataclass(frozen=True, slots=True)
class Node:
    """One api node while it runs."""

    id: NodeId
    public: Address
    internal: Address
    switchboard: Switchboard
    control_sockets: ControlSockets
    presence: Presence
    drain: Drain


async def start_node(settings: Settings, parts: Lifecycle) -> Node:
    """An api node: each part after those that it needs; ``parts`` stops them in reverse, the sockets first."""
    base = await parts.start("foundation", foundation(settings))
    tokens = shared_use_cases.tokens(base)  # keys that are missing are told before anything is waited for
    metrics = Metrics()
    sight = await wait_in_sight(base, parts, metrics)
    core = node_core(base, tokens, metrics, await _tasks(parts))
    await parts.start("switchboard", _quiet_at_the_end(core.switchboard))
    parts.own("traffic", core.traffic.run())
    parts.own("presence", core.presence.run())
    parts.own("feeds", core.feeds.run())
    ear = await hear(base, core, parts)
    control_sockets = ControlSockets(
        Identify(core.uow, core.tokens, base.clock, settings.server.public_origins),
        Control(
            core.uow,
            base.clock,
            core.presence,
            core.host_sessions,
            Verdict(core.uow, core.host_sessions),
            settings.hosts.last_seen_interval,
        ),
        core.links,
        base.clock,
        core.tokens.jwks,
        limits.control(settings),
    )
    side_sockets = SideSockets(
        Admission(core.uow, core.tokens, settings.server.public_origins, core.switchboard.remembered_host),
        core.switchboard,
        base.clock,
        settings.server.public_origins,
        settings.wire.identify_timeout,
        limits.forwarder(settings),
    )
    keeper = KeyKeeper(core.tokens.keys, base.clock, settings.secrets.reload_interval, control_sockets.keys_changed)
    core.tail.subscribe(keeper)
    parts.own("keys", keeper.run())
    sight.health.report("keys", keeper.state)
    sweeping = sweep(base, core.uow) if settings.server.role == "all" else None
    if sweeping is not None:
        core.tail.subscribe(sweeping)
        parts.own("sweep", sweeping.run())
    figures.show(core, control_sockets, side_sockets)

    parts.own("health", sight.health.run(core.switchboard.storage_lost))
    node_id = NodeId(new_id(base.clock.now()))
    app = public_app(base, core, node_id, control_sockets, side_sockets)
    listener = await serve(parts, "public_listener", Listener(app, settings.server.listen, limits.http(settings)))
    linger = settings.server.stop_linger
    await parts.start("sockets", _leaving(sight.health, core, control_sockets, side_sockets, linger))
    own = partial(figures.own, base, core, control_sockets, side_sockets, ear)
    entry = registry(base, core.uow, this_process(base, listener.address, node_id), own, partial(_hear_keys, keeper))
    leaving = NodeLeaving(
        sight.health, entry, listener, control_sockets, core.switchboard, core.feeds, sweeping, parts.stop
    )
    drain = Drain(leaving, base.clock, limits.drain(settings))
    core.tail.subscribe(DrainOrders(core.uow, node_id, drain.begin))
    await enter(base, parts, sight.health, entry)
    parts.own("drain", drain.run())
    await parts.start("patience", base.database.bounded_end())
    sight.app.router.routes.append(drain_route(drain, partial(may_drain, settings)))
    return Node(node_id, listener.address, sight.address, core.switchboard, control_sockets, core.presence, drain)


async def _tasks(parts: Lifecycle) -> asyncio.TaskGroup:
    """A group for short work; what is still under way at the end is cancelled. A defect in it ends the process."""
    opened: asyncio.Future[asyncio.TaskGroup] = asyncio.get_running_loop().create_future()

    async def hold() -> None:
        async with asyncio.TaskGroup() as tasks:
            opened.set_result(tasks)
            await asyncio.Event().wait()

    parts.own("tasks", hold())
    return await opened


@asynccontextmanager
async def _quiet_at_the_end(switchboard: Switchboard) -> AsyncIterator[None]:
    """After all that feeds it and before its tasks, which no timer may add to any more."""
    yield
    switchboard.stop()


@asynccontextmanager
async def _leaving(
    health: Health, core: Core, control_sockets: ControlSockets, side_sockets: SideSockets, linger: float
) -> AsyncIterator[None]:
    """At the end everybody who is left is told that the node leaves, and has ``linger`` seconds to take it."""
    yield
    health.leave()
    core.feeds.drain()
    control_sockets.close_all(CloseCode.RESTART, REASON)
    core.switchboard.close_all(CloseCode.RESTART, REASON)
    await core.switchboard.emptied(linger)
    side_sockets.heartbeat.stop()


def _hear_keys(keeper: KeyKeeper, others: Sequence[HeldKeys]) -> None:
    keeper.hear({str(each.node_id): each.key_ids for each in others}, {each.signs_with for each in others})
