"""What a worker is made of."""

from __future__ import annotations

import logging

from bothy_server import limits
from bothy_server.cluster.adapters.postgres.signals import notifier
from bothy_server.cluster.domain import node as cluster_node
from bothy_server.hosts.app.ports import HostStore
from bothy_server.identity.app.attempts import AttemptStore
from bothy_server.identity.app.device_logins import DeviceLoginStore
from bothy_server.identity.app.grants import GrantStore
from bothy_server.identity.app.ports import ChallengeStore
from bothy_server.platform.event_log import EventLogTail, prune
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.setting_values import Address
from bothy_server.platform.settings import Settings
from bothy_server.platform.telemetry import Metrics
from bothy_server.platform.unit_of_work import SqlUnitOfWork
from bothy_server.terminal.app.sweep import Sweep
from bothy_server.wiring import shared_use_cases
from bothy_server.wiring.in_sight import wait_in_sight
from bothy_server.wiring.membership import enter, registry, this_process
from bothy_server.wiring.process import STORES, Foundation, foundation
from bothy_server.wiring.signals import outbound

_log = logging.getLogger(__name__)


async def start_worker(settings: Settings, parts: Lifecycle) -> Address:
    """Sweeps, and an internal listener, whose address is returned. Signals go out, none come in; the event log is followed."""
    base = await parts.start("foundation", foundation(settings))
    sight = await wait_in_sight(base, parts, Metrics())
    uow = SqlUnitOfWork(base.database, STORES, outbound(base, notifier(base.database)))
    sweeping, tail = sweep(base, uow), EventLogTail(base.database, base.clock, limits.tail(settings))
    tail.subscribe(sweeping)
    parts.own("event_tail", tail.run())
    parts.own("sweep", sweeping.run())
    parts.own("health", sight.health.run())
    await enter(base, parts, sight.health, registry(base, uow, this_process(base, None), cluster_node.Figures))
    await parts.start("patience", base.database.bounded_end())
    return sight.address


def sweep(base: Foundation, uow: SqlUnitOfWork) -> Sweep:
    """The sweeps of a worker, or of a node of role ``all``."""

    async def prune_proofs() -> int:
        async with uow() as unit:
            return await unit.of(ChallengeStore).prune()

    async def prune_attempts() -> int:
        async with uow() as unit:
            return await unit.of(AttemptStore).prune()

    async def prune_device_logins() -> int:
        async with uow() as unit:
            return await unit.of(DeviceLoginStore).prune()

    async def prune_codes() -> int:
        async with uow() as unit:
            return await unit.of(HostStore).prune_codes()

    async def prune_grants() -> int:
        async with uow() as unit:
            return await unit.of(GrantStore).prune()

    async def prune_events() -> int:
        return await prune(base.database, base.settings.event_log.retention, base.settings.event_log.batch)

    nodes = shared_use_cases.nodes(base, uow)
    prunes = [prune_proofs, prune_device_logins, prune_attempts, prune_codes, prune_grants, prune_events, nodes.prune]
    return Sweep(uow, base.clock, limits.sweep(base.settings), prunes)
