"""What the command line is made of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bothy_server.cluster.adapters.postgres.signals import notifier
from bothy_server.cluster.app.node_registry import NodeDirectory
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.naming import Naming
from bothy_server.hosts.app.pairing import Pairing
from bothy_server.hosts.app.transitions import Transitions
from bothy_server.identity.app.devices import Devices
from bothy_server.identity.app.grants import Grants
from bothy_server.identity.app.people import People
from bothy_server.kernel.unit import Event
from bothy_server.platform.audit_chain import AuditLog
from bothy_server.platform.settings import Settings
from bothy_server.platform.unit_of_work import SqlUnitOfWork
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.app.right_losses import RightLosses
from bothy_server.wiring import shared_use_cases
from bothy_server.wiring.process import STORES, foundation, reach
from bothy_server.wiring.signals import outbound

_AUDIT_BATCH = 1000
"""Rows of the audit log in memory. No key: they are a few hundred kilobytes."""


@dataclass(frozen=True, slots=True)
class Admin:
    """Use cases that `bothy-server` calls without a node."""

    people: People
    devices: Devices
    pairing: Pairing
    transitions: Transitions
    naming: Naming
    grants: Grants
    nodes: NodeDirectory
    audit: AuditLog
    tell_keys_changed: Callable[[], Awaitable[None]]


@asynccontextmanager
async def admin(settings: Settings) -> AsyncIterator[Admin]:
    """The use cases of the command line on this database."""
    async with foundation(settings) as base:
        await reach(base)
        uow = SqlUnitOfWork(base.database, STORES, outbound(base, notifier(base.database)))
        tokens = shared_use_cases.tokens(base)
        host_sessions = HostSessions(uow, ControlLinks())

        async def tell_keys_changed() -> None:
            async with uow() as unit:
                unit.emit(Event("keys.changed"))

        yield Admin(
            shared_use_cases.people(base, uow),
            shared_use_cases.devices(base, uow),
            shared_use_cases.pairing(base, uow, tokens, host_sessions),
            Transitions(uow, host_sessions),
            Naming(uow),
            Grants(uow, RightLosses()),
            shared_use_cases.nodes(base, uow),
            AuditLog(base.database, _AUDIT_BATCH),
            tell_keys_changed,
        )
