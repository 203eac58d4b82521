"""What a test of a use case begins with: persons, devices, hosts and sessions in a real database, and no node.

Everything is written through the server's own stores, and every name is new, so that tests may share a database.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID, uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from sqlalchemy import text

from bothy_kit.cluster import ORIGIN
from bothy_kit.recorded import RecordedControlLink, RecordedSignals
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.domain.host import HostState
from bothy_server.identity.app.api import Act
from bothy_server.identity.app.ports import ChallengeStore, DeviceKeys, PersonStore, RightStore
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.database import Database
from bothy_server.platform.unit_of_work import SqlUnit, SqlUnitOfWork
from bothy_server.terminal.app.ports import NewSession, SessionRecord, SessionStore
from bothy_server.terminal.domain.session import SessionState
from bothy_server.wiring import STORES
from bothy_wire import signing
from bothy_wire.ids import ConnId, DeviceId, HostId, PersonId, SessionId, StepUpId

PROFILES: Mapping[str, Sequence[str]] = {"shell": ["alex-shell", "robin-shell"]}

_BLOCKED = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
_TABLES = text("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")


@dataclass(frozen=True, slots=True)
class Keys:
    """The two keys of a device or host."""

    signing_key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    channel_key: X25519PrivateKey = field(default_factory=X25519PrivateKey.generate)

    @property
    def public(self) -> tuple[bytes, bytes]:
        """Signing key, channel key."""
        return self.signing_key.public_key().public_bytes_raw(), self.channel_key.public_key().public_bytes_raw()

    def sign(self, purpose: signing.Purpose, *fields: bytes | str, origin: str = ORIGIN) -> bytes:
        """A signature that the server takes, unless ``origin`` is another one's."""
        return signing.sign(self.signing_key, purpose, origin, *fields)


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device and who calls with it."""

    caller: Caller
    keys: Keys

    @property
    def id(self) -> DeviceId:
        """Its id."""
        return self.caller.device_id

    @property
    def person_id(self) -> PersonId:
        """Whose."""
        return self.caller.person_id


@dataclass(frozen=True, slots=True)
class HostRow:
    """A paired host."""

    id: HostId
    name: str
    keys: Keys
    boot_id: UUID = field(default_factory=uuid4)


class Rows:
    """One database. ``away`` makes every unit fail as when the database does not answer; ``units`` counts those opened."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.clock = clock
        self.signals = RecordedSignals()
        self.away = False
        self.units = 0
        self._database = database
        self._units = SqlUnitOfWork(database, STORES, self.signals)
        self._numbers = itertools.count(1)

    @asynccontextmanager
    async def uow(self) -> AsyncIterator[SqlUnit]:
        """The unit of work that the use cases get."""
        self.units += 1
        if self.away:
            raise StorageUnavailable("the test took the database away")
        async with self._units() as unit:
            yield unit

    def new_id(self) -> UUID:
        """An id that nothing has."""
        return new_id(self.clock.now())

    def name(self, what: str) -> str:
        """A name that nothing has."""
        return f"{what}-{uuid4().hex[:8]}-{next(self._numbers)}"

    # ---- reading and spoiling -----------------------------------------------------------------------------------

    async def run(self, statement: str, **values: object) -> list[Any]:
        """Any statement, committed; its rows."""
        async with self._units() as unit:
            done = await unit.connection.execute(text(statement), values)
            return list(done) if done.returns_rows else []

    async def content(self) -> dict[str, object]:
        """All that a use case can leave behind: every table's rows, condensed, and the signals. For comparing."""
        async with self._units() as unit:
            tables = [name for (name,) in await unit.connection.execute(_TABLES)]
            parts = " UNION ALL ".join(
                f"SELECT '{name}', md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {name} t" for name in tables
            )
            found = {row[0]: row[1] for row in await unit.connection.execute(text(parts))}
        return found | {"signals": [*self.signals.committed_ones, *self.signals.sent]}

    async def blocked(self, statements: int = 1) -> None:
        """Wait until so many statements wait for a lock of somebody else. May be called inside a unit."""
        async with self._database.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")  # in a transaction it would not change
            while (await connection.execute(_BLOCKED)).scalar_one() < statements:  # noqa: ASYNC110 - the database tells nobody
                await asyncio.sleep(0.005)

    async def audit(self, **ids: UUID) -> list[tuple[str, str]]:
        """Action and code of the entries that carry these ids, oldest first."""
        return [(row.action, row.code) for row in await self._log("audit_log", ids)]

    async def events(self, **ids: UUID) -> list[str]:
        """Types of the events that carry these ids, oldest first."""
        return [row.type for row in await self._log("event_log", ids)]

    async def _log(self, table: str, ids: Mapping[str, UUID]) -> list[Any]:
        where = " AND ".join(f"{name} = :{name}" for name in ids)
        return await self.run(f"SELECT * FROM {table} WHERE {where} ORDER BY position", **ids)

    # ---- persons and devices ------------------------------------------------------------------------------------

    async def person(self, *, operator: bool = False) -> PersonId:
        """A new person."""
        person_id = PersonId(self.new_id())
        async with self._units() as unit:
            await unit.of(PersonStore).add_person(person_id, self.name("person"), is_operator=operator)
        return person_id

    async def device(self, person_id: PersonId | None = None, *, operator: bool = False) -> DeviceRow:
        """A new device, of a new person unless one is given."""
        owner = person_id or await self.person(operator=operator)
        device_id, keys = DeviceId(self.new_id()), Keys()
        async with self._units() as unit:
            await unit.of(PersonStore).add_device(device_id, owner, "laptop", *keys.public)
        return DeviceRow(Caller(owner, device_id, operator, "cli"), keys)

    async def browser(
        self,
        person_id: PersonId | None = None,
        *,
        added_by: Literal["invite", "passkey"] = "invite",
        login_s: float = 3600,
    ) -> DeviceRow:
        """A new browser, signed in for so long."""
        owner, device_id, keys = person_id or await self.person(), DeviceId(self.new_id()), Keys()
        async with self._units() as unit:
            await unit.of(PersonStore).add_browser(
                device_id, owner, "browser", DeviceKeys(*keys.public), login_s, added_by=added_by
            )
        return DeviceRow(Caller(owner, device_id, False, "browser"), keys)

    async def step_up(
        self,
        device: DeviceRow,
        host: HostRow,
        purpose: Literal["open", "attach"] = "open",
        *,
        profile: str = "shell",
        session_user: str = "alex-shell",
        ttl_s: float = 60,
    ) -> StepUpId:
        """A confirmation that was not used yet."""
        return await self.confirmed(device, Act(purpose, host.id, profile, session_user), ttl_s)

    async def managing(self, device: DeviceRow, host_id: HostId) -> StepUpId:
        """A confirmation of one act of management on a host."""
        return await self.confirmed(device, Act("manage_host", host_id))

    async def confirmed(self, device: DeviceRow, act: Act, ttl_s: float = 60) -> StepUpId:
        """A confirmation of any act."""
        step_up_id = StepUpId(self.new_id())
        async with self._units() as unit:
            await unit.of(ChallengeStore).add_step_up(step_up_id, device.person_id, device.id, act, "device_key", ttl_s)
        return step_up_id

    # ---- hosts --------------------------------------------------------------------------------------------------

    async def unpaired_host(self, *owners: DeviceRow) -> HostId:
        """A host in ``pending`` without keys."""
        host_id = HostId(self.new_id())
        async with self._units() as unit:
            await unit.of(HostStore).add(host_id, self.name("host"))
            for owner in owners:
                await unit.of(RightStore).add_owner(owner.person_id, host_id)
        return host_id

    async def host(
        self, *owners: DeviceRow, state: HostState = HostState.ACTIVE, local_confirm: bool = False
    ) -> HostRow:
        """A paired host that identified and reported :data:`PROFILES`."""
        host_id, keys = await self.unpaired_host(*owners), Keys()
        async with self._units() as unit:
            store = unit.of(HostStore)
            await store.store_keys(host_id, *keys.public, state, 1)
            found = await store.get(host_id)
            assert found is not None
            host, conn_id = HostRow(host_id, found.name, keys), ConnId(self.new_id())
            await store.record_identify(host_id, conn_id, host.boot_id, 1, 2)
            await store.record_report(
                host_id, conn_id, PROFILES, local_confirm=local_confirm, os="linux", arch="x86_64"
            )
        return host

    def link(self, host_id: HostId, *, eligible: bool = True) -> RecordedControlLink:
        """A control connection of a host, made now."""
        return RecordedControlLink(host_id, ConnId(self.new_id()), eligible=eligible)

    async def grant(self, device: DeviceRow, host: HostRow, session_user: str = "alex-shell") -> None:
        """The right ``terminal`` as one session user."""
        async with self._units() as unit:
            await unit.of(RightStore).add_grant(device.person_id, host.id, session_user, None)

    # ---- sessions -----------------------------------------------------------------------------------------------

    async def session(
        self, device: DeviceRow, host: HostRow, state: SessionState = SessionState.OPENING, *, paired: bool = False
    ) -> SessionRecord:
        """A session in any state; beyond ``opening`` it was paired, and started."""
        session_id = SessionId(self.new_id())
        new = NewSession(host.id, device.person_id, device.id, "shell", "alex-shell", 3600)
        async with self._units() as unit:
            store = unit.of(SessionStore)
            await store.add(session_id, new)
            if paired or state in {SessionState.ACTIVE, SessionState.DETACHED}:
                found = await store.pair(session_id, 1)
                assert found is not None
                assert found.outcome == "granted", found.outcome
            if state in {SessionState.ACTIVE, SessionState.DETACHED}:
                await store.start(session_id, host.id)
            if state is SessionState.DETACHED:
                await store.detach(session_id, 1)
            if state is SessionState.CLOSED:
                await store.close([session_id], "client_closed")
        return await self.record(session_id)

    async def record(self, session_id: SessionId) -> SessionRecord:
        """The row as it is now."""
        async with self._units() as unit:
            return (await unit.of(SessionStore).rows([session_id]))[session_id]
