"""Several real nodes in one process: real sockets, one real database, an edge rule that a test chooses."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, LiteralString
from uuid import UUID

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier

from bothy_kit.fake_device import FakeDevice
from bothy_kit.fake_host import FakeHost
from bothy_kit.sockets import PATIENCE_S
from bothy_server import wiring
from bothy_server.identity.adapters.keystore.store import add_key
from bothy_server.identity.app.invites import Invited
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.settings import Settings
from bothy_wire.ids import HostId, SessionId

ORIGIN = "http://relay.example.com"
"""What clients sign for; where they dial is another matter, as behind every edge."""
_ANY_RATE = "100000 per second"


@dataclass(slots=True)
class Running:
    """One node and what stops it."""

    node: wiring.Node
    url: str
    stack: AsyncExitStack

    async def stop(self) -> None:
        """Leave in order."""
        await self.stack.aclose()


@dataclass(slots=True)
class Cluster:
    """Nodes on one database. ``mode`` is the edge's rule: both sides of a session to one node, or to different ones."""

    settings: Settings
    admin: wiring.Admin
    nodes: list[Running] = field(default_factory=list)
    mode: Literal["hash", "split"] = "hash"
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    def url_of(self, session_id: SessionId, side: Literal["device", "host"]) -> str:
        """Where the edge sends this side."""
        if self.mode == "split":
            return self.nodes[0 if side == "device" else 1].url
        at = int.from_bytes(hashlib.sha256(session_id.bytes).digest()[:4], "big") % len(self.nodes)
        return self.nodes[at].url

    def others(self, url: str) -> list[Running]:
        """The nodes elsewhere."""
        return [each for each in self.nodes if each.url != url]

    async def device(self, name: str = "Robin", *, url: str | None = None) -> FakeDevice:
        """A new device of a new person, signed in."""
        return await self._signed_in(await self.admin.people.add(name, is_operator=False), url)

    async def another_device(self, name: str, *, url: str | None = None) -> FakeDevice:
        """One more device of a person."""
        person = await self.admin.people.find(name)
        return await self._signed_in(await self.admin.people.invite(person.id), url)

    async def operator(self, name: str = "Kim", *, url: str | None = None) -> FakeDevice:
        """A new device of a new operator, signed in."""
        return await self._signed_in(await self.admin.people.add(name, is_operator=True), url)

    async def _signed_in(self, invited: Invited, url: str | None) -> FakeDevice:
        device = await self.stack.enter_async_context(FakeDevice(ORIGIN, url or self.nodes[0].url))
        assert invited.code is not None
        assert (await device.redeem(invited.code)).status == 201
        assert (await device.login()).status == 200
        return device

    async def couple(self) -> tuple[FakeDevice, FakeHost]:
        """A device, and a host that its person owns, under names that nothing has: tests may share the cluster."""
        number = secrets.token_hex(4)
        device = await self.device(f"Robin-{number}")
        return device, await self.host(f"lab-{number}", f"Robin-{number}")

    async def host(self, name: str = "lab-1", owner: str = "Robin", *, url: str | None = None) -> FakeHost:
        """A new host, paired and not connected."""
        made = await self.admin.pairing.create(name, owner, None)
        code, _ = await self.admin.pairing.issue_code(made.id, None)
        host = await self.stack.enter_async_context(FakeHost(ORIGIN, url or self.nodes[-1].url))
        assert (await host.pair(code)).status_code == 201
        return host

    async def code(self, host_id: UUID) -> str:
        """A new pairing code."""
        return (await self.admin.pairing.issue_code(HostId(host_id), None))[0]

    async def sql(self, statement: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        """Any statement on the cluster's database, committed; its rows."""
        url = self.settings.database.url.get_secret_value()
        async with await psycopg.AsyncConnection.connect(url) as connection:
            done = await connection.execute(statement, values)
            return await done.fetchall() if done.description else []

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """While the block runs the database lets nobody in; whoever was there is cut. Its connections are stale after it."""
        url = self.settings.database.url.get_secret_value()
        name = conninfo_to_dict(url)["dbname"]
        allow = SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        admin = make_conninfo(url, dbname="postgres")
        async with await psycopg.AsyncConnection.connect(admin, autocommit=True) as connection:
            await connection.execute(allow.format(Identifier(str(name)), False))
            try:
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
                )
                yield
            finally:
                await connection.execute(allow.format(Identifier(str(name)), True))


def settings(database_url: str, folder: Path, **groups: dict[str, Any]) -> Settings:
    """Settings of a test node: free ports, keys in ``folder``; ``groups`` are laid over.

    A machine that is slow is no database that is away: a node waits for it as long as a test does. All clients of a test are
    behind one address, and some tests do nothing but fail: rates are for those that set them.
    """
    patience = dict.fromkeys(
        ("pool_timeout", "connect_timeout", "statement_timeout", "transaction_timeout"), PATIENCE_S
    )
    base: dict[str, dict[str, Any]] = {
        "database": {"url": database_url, **patience},
        "secrets": {"signing_key_dir": folder / "keys"},
        "server": {"listen": "127.0.0.1:0", "internal_listen": "127.0.0.1:0", "public_origins": [ORIGIN]},
        "hosts": {"pairing": "auto"},
        "terminal": {
            "host_duplicate_probe_timeout": "100ms",
            "presence_flush_interval": "20ms",
            "open_rate": _ANY_RATE,
        },
        "identity": {"address_rate": _ANY_RATE, "attempt_rate": _ANY_RATE, "device_rate": _ANY_RATE},
    }
    for name, keys in groups.items():
        base[name] = base.get(name, {}) | keys
    return Settings.model_validate(base)


class Unattended(Lifecycle):
    """Its node may ask for its own end, after a drain; it goes on until the test stops it."""

    def stop(self) -> None:
        """Asked in vain."""


async def start(made: Settings) -> Running:
    """One node."""
    stack = AsyncExitStack()
    parts = await stack.enter_async_context(Unattended())
    node = await wiring.start_node(made, parts)
    return Running(node, f"http://{node.public}", stack)


@asynccontextmanager
async def cluster(
    database_url: str,
    folder: Path,
    *,
    nodes: int = 2,
    cluster_mode: Literal["single", "multi"] | None = None,
    start: Callable[[Settings], Awaitable[Running]] = start,
    **groups: dict[str, Any],
) -> AsyncIterator[Cluster]:
    """Start nodes; everything that was started through the cluster is stopped at the end."""
    mode = cluster_mode or ("multi" if nodes > 1 else "single")
    groups["cluster"] = {"mode": mode} | groups.get("cluster", {})
    made = settings(database_url, folder, **groups)
    if not (folder / "keys").exists():
        now = datetime.now(UTC)
        add_key(folder / "keys", now, now)
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(wiring.admin(made))
        running = Cluster(made, admin)
        stack.push_async_callback(_stop, running)
        for _ in range(nodes):
            running.nodes.append(await start(made))
        await stack.enter_async_context(running.stack)
        yield running


async def _stop(running: Cluster) -> None:
    for each in reversed(running.nodes):
        await each.stop()
