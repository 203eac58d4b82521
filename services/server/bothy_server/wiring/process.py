"""What every process stands on: its settings, its database with the stores, its clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bothy_server.cluster.adapters.postgres.nodes import PostgresNodeStore
from bothy_server.cluster.app.node_registry import NodeStore
from bothy_server.events.adapters.postgres.log import PostgresLogStore
from bothy_server.events.adapters.postgres.sights import PostgresSightStore
from bothy_server.events.app.ports import LogStore, SightStore
from bothy_server.hosts.adapters.postgres.hosts import PostgresHostStore
from bothy_server.hosts.app.ports import HostStore
from bothy_server.identity.adapters.postgres.attempts import PostgresAttemptStore
from bothy_server.identity.adapters.postgres.audit import PostgresAuditStore
from bothy_server.identity.adapters.postgres.challenges import PostgresChallengeStore
from bothy_server.identity.adapters.postgres.device_logins import PostgresDeviceLoginStore
from bothy_server.identity.adapters.postgres.devices import PostgresDeviceStore
from bothy_server.identity.adapters.postgres.grants import PostgresGrantStore
from bothy_server.identity.adapters.postgres.passkeys import PostgresPasskeyStore
from bothy_server.identity.adapters.postgres.people import PostgresPeopleStore
from bothy_server.identity.adapters.postgres.persons import PostgresPersonStore
from bothy_server.identity.adapters.postgres.repeats import PostgresRepeatStore
from bothy_server.identity.adapters.postgres.rights import PostgresRightStore
from bothy_server.identity.app.attempts import AttemptStore
from bothy_server.identity.app.audit import AuditStore
from bothy_server.identity.app.device_logins import DeviceLoginStore
from bothy_server.identity.app.devices import DeviceStore
from bothy_server.identity.app.grants import GrantStore
from bothy_server.identity.app.holding import HoldStore
from bothy_server.identity.app.passkey_proof import PasskeyStore
from bothy_server.identity.app.people import PeopleStore
from bothy_server.identity.app.ports import ChallengeStore, PersonStore, RightStore
from bothy_server.identity.app.repeats import RepeatStore
from bothy_server.platform.clock import ClusterClock
from bothy_server.platform.database import Database
from bothy_server.platform.settings import Settings
from bothy_server.platform.unit_of_work import StoreFactories
from bothy_server.terminal.adapters.postgres.right_losses import PostgresCarriedStore
from bothy_server.terminal.adapters.postgres.sessions import PostgresSessionStore
from bothy_server.terminal.adapters.postgres.sweep import PostgresSweepStore
from bothy_server.terminal.app.ports import SessionStore
from bothy_server.terminal.app.right_losses import CarriedStore
from bothy_server.terminal.app.sweep import SweepStore

STORES: StoreFactories = {
    PersonStore: PostgresPersonStore,
    PeopleStore: PostgresPeopleStore,
    DeviceStore: PostgresDeviceStore,
    HoldStore: PostgresDeviceStore,
    ChallengeStore: PostgresChallengeStore,
    DeviceLoginStore: PostgresDeviceLoginStore,
    RightStore: PostgresRightStore,
    GrantStore: PostgresGrantStore,
    PasskeyStore: PostgresPasskeyStore,
    AttemptStore: PostgresAttemptStore,
    AuditStore: PostgresAuditStore,
    RepeatStore: PostgresRepeatStore,
    HostStore: PostgresHostStore,
    SessionStore: PostgresSessionStore,
    CarriedStore: PostgresCarriedStore,
    SweepStore: PostgresSweepStore,
    NodeStore: PostgresNodeStore,
    SightStore: PostgresSightStore,
    LogStore: PostgresLogStore,
}


@dataclass(frozen=True, slots=True)
class Foundation:
    """What every process stands on."""

    settings: Settings
    database: Database
    clock: ClusterClock


@asynccontextmanager
async def foundation(settings: Settings) -> AsyncIterator[Foundation]:
    """A database, not dialled yet, and a clock that :func:`reach` sets by it."""
    database = Database(settings.database)
    try:
        yield Foundation(settings, database, ClusterClock())
    finally:
        await database.close()


async def reach(base: Foundation) -> None:
    """See that the database has our schema, and read its clock. Raises ``SchemaError`` or ``StorageUnavailable``."""
    await base.database.check_schema()
    await base.clock.synchronize(base.database)
