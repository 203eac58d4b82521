"""The whole examination: every check runs, whatever became of the others, and each ends in bounded time."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from bothy_server import limits
from bothy_server.cluster.adapters.postgres.connection import ListeningConnection
from bothy_server.cluster.adapters.postgres.nodes import PostgresNodeStore
from bothy_server.cluster.domain.node import WRITES_HEARD, NodeState
from bothy_server.doctor import edge_judgement, nginx_conf, server_judgement
from bothy_server.doctor.edge_probe import FORGED, Edge, EdgeError, wrong_spellings
from bothy_server.doctor.finding import CHECKS, Finding, Verdict, failed, ok, unseen
from bothy_server.doctor.server_judgement import Told
from bothy_server.identity.adapters.keystore.store import KeyStoreError
from bothy_server.identity.adapters.keystore.tokens import KeyStoreTokens
from bothy_server.identity.domain.tokens import ProbeToken
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.platform.clock import ClusterClock
from bothy_server.platform.database import Database, SchemaError
from bothy_server.platform.settings import Settings
from bothy_wire.signing import canonical_origin

SESSIONS = 200
"""Made-up sessions that the routing is tried with: one node of twenty is missed once in 30,000 runs."""

HOLD = 1.25
"""The silence that a stream path has to bear, in ``wire.ping_interval``."""

AT_THE_EDGE = (
    "routing.repeat",
    "routing.pairs",
    "routing.nodes",
    "spellings",
    "upgrade",
    "probe",
    "buffering",
    "idle",
    "trusted_proxies",
    "origins",
)
"""Checks that need an edge that is there."""

_SIGNED = ("buffering", "idle", "trusted_proxies", "origins")
"""Checks whose question is signed."""

Tell = Callable[[str], None]
_STANDBY = text("SELECT pg_is_in_recovery(), current_setting('server_version_num')::int")


class Examination:
    """One run. ``edge`` and ``conf`` are None where only the rest is wanted."""

    def __init__(self, settings: Settings, edge: Edge | None, conf: Path | None, tell: Tell = lambda _: None) -> None:
        """``tell`` hears what is done next."""
        self._settings = settings
        self._edge = edge
        self._conf = conf
        self._tell = tell
        self._clock = ClusterClock()
        self._nodes: list[Told] | None = None
        self._skews: dict[str, float] = {}

    async def run(self) -> list[Finding]:
        """All findings, in the order of :data:`CHECKS`."""
        found: list[Finding] = []
        async with _closing(Database(self._settings.database)) as database:
            found += await self._apart(["database"], self._database(database))
            reached = found[0].verdict is Verdict.OK
            tokens, finding = self._key_store()
            found.append(finding)
            await self._read_nodes(database)
            found.append(self._node_keys(tokens))
            for check, act in (("migrations", self._migrations), ("listener_echo", self._listener_echo)):
                found += await self._apart([check], act(database)) if reached else [unseen(check, "needs the database")]
        if self._edge is not None:
            found += await self._apart(["edge"], self._reach(self._edge))
            found += (
                await self._at_the_edge(self._edge, tokens)
                if found[-1].verdict is Verdict.OK
                else [unseen(each, "the edge was not reached") for each in AT_THE_EDGE]
            )
        found.append(server_judgement.clock(self._skews, self._settings.cluster.clock_warn))
        if self._conf is not None:
            found += self._configuration(self._conf)
        order = list(CHECKS)
        return sorted(found, key=lambda each: order.index(each.check))

    async def _apart(self, checks: Sequence[str], act: Awaitable[list[Finding]]) -> list[Finding]:
        """A fault of what is examined is that check's finding and nobody else's."""
        self._tell(", ".join(checks))
        try:
            return await act
        except (StorageUnavailable, SchemaError, DBAPIError, psycopg.Error, EdgeError) as error:
            first = str(error).partition("\n")[0]
            return [failed(checks[0], first), *(unseen(each, f"{checks[0]} failed") for each in checks[1:])]

    async def _database(self, database: Database) -> list[Finding]:
        async with database.connect() as connection:
            standby, number = (await connection.execute(_STANDBY)).one()
        await self._clock.synchronize(database)
        if self._clock.skew is not None:
            self._skews["this machine"] = self._clock.skew
        if standby:
            return [failed("database", "database.url leads to a standby")]
        return [ok("database", f"PostgreSQL {number // 10_000}")]

    async def _migrations(self, database: Database) -> list[Finding]:
        await database.check_schema()
        return [ok("migrations", "up to date")]

    def _key_store(self) -> tuple[KeyStoreTokens | None, Finding]:
        try:
            tokens = KeyStoreTokens(self._settings.secrets.signing_key_dir, self._clock, limits.tokens(self._settings))
        except KeyStoreError as error:
            return None, failed("key_store", str(error))
        if troubles := tokens.keys.troubles():
            return tokens, failed("key_store", "; ".join(each.words for each in troubles))
        return tokens, ok("key_store", f"{len(tokens.keys.ids)} keys")

    async def _read_nodes(self, database: Database) -> None:
        """Those that live; what is unreachable shows itself in the checks of the database."""
        heard = WRITES_HEARD * self._settings.cluster.status_interval
        try:
            async with database.connect() as connection:
                listed = await PostgresNodeStore(connection).all()
        except (StorageUnavailable, DBAPIError):
            return
        self._nodes = [
            Told(
                str(each.node.id),
                each.figures.key_ids,
                each.figures.signs_with,
                each.figures.echo_age_s,
                each.node.role != "worker",
            )
            for each in listed
            if each.state is NodeState.ACTIVE and each.silent_s <= heard
        ]

    def _node_keys(self, tokens: KeyStoreTokens | None) -> Finding:
        if tokens is None or self._nodes is None:
            return unseen("node_keys", "needs the key store and the database")
        return server_judgement.node_keys(tokens.keys.ids, self._nodes)

    async def _listener_echo(self, database: Database) -> list[Finding]:
        settings, channel = self._settings.database, f"bothy_doctor_{secrets.token_hex(8)}"
        took: float | None = None
        async with await ListeningConnection.open(database) as listening:
            await listening.listen(channel)
            began = time.monotonic()
            async with database.connect() as connection:
                await connection.execute(text("SELECT pg_notify(:channel, '')"), {"channel": channel})
                await connection.commit()
            try:
                async with asyncio.timeout(settings.listen_echo_timeout):
                    await listening.payloads()
                took = time.monotonic() - began
            except TimeoutError:
                took = None
        longest = (
            settings.listen_watchdog_interval + settings.listen_echo_timeout + self._settings.cluster.status_interval
        )
        return [server_judgement.listener_echo(took, self._nodes or [], longest)]

    async def _reach(self, edge: Edge) -> list[Finding]:
        return [ok("edge", await asyncio.to_thread(edge.reach))]

    async def _at_the_edge(self, edge: Edge, tokens: KeyStoreTokens | None) -> list[Finding]:
        session_id = _made_up()
        node_of: dict[str, UUID] = {}

        async def routing() -> list[Finding]:
            ids = [_made_up() for _ in range(SESSIONS)]
            answers = await asyncio.to_thread(edge.answers, ids)
            node_of.update({answer.stream: each for each, answer in zip(ids, answers, strict=True)})
            living = None if self._nodes is None else {each.node_id for each in self._nodes if each.serves}
            return edge_judgement.routing(answers, living)

        async def spellings() -> list[Finding]:
            wrong = wrong_spellings(session_id)
            return [edge_judgement.spellings(await asyncio.to_thread(edge.accepted, wrong), len(wrong))]

        async def upgrade() -> list[Finding]:
            return [edge_judgement.upgrade(await asyncio.to_thread(edge.refused, session_id), 3)]

        found = await self._apart(["routing.repeat", "routing.pairs", "routing.nodes"], routing())
        found += await self._apart(["spellings"], spellings())
        found += await self._apart(["upgrade"], upgrade())
        if tokens is None:
            return found + [unseen(each, "needs the key store, to sign the probe") for each in ("probe", *_SIGNED)]

        async def seen() -> list[Finding]:
            answers = [
                await asyncio.to_thread(edge.seen, each, tokens.mint(ProbeToken(0))[0])
                for each in node_of.values() or [session_id]
            ]
            self._skews |= {f"node {each.node_id}": each.skew_s for each in answers if each.skew_s is not None}
            dialled = canonical_origin(edge.url)
            return [
                ok("probe", f"answered by {len(answers)} nodes"),
                edge_judgement.trusted_proxies(answers[0], FORGED),
                edge_judgement.origins(answers, dialled),
            ]

        async def held() -> list[Finding]:
            hold_s = HOLD * self._settings.wire.ping_interval
            token, _ = tokens.mint(ProbeToken(hold_s))
            answer = await asyncio.to_thread(edge.held, session_id, token, hold_s)
            return [edge_judgement.buffering(answer), edge_judgement.idle(answer)]

        answered = await self._apart(["probe", "trusted_proxies", "origins"], seen())
        if answered[0].verdict is not Verdict.OK:
            return found + answered + [unseen(each, "probe failed") for each in ("buffering", "idle")]
        return found + answered + await self._apart(["buffering", "idle"], held())

    def _configuration(self, conf: Path) -> list[Finding]:
        terminal = self._settings.terminal
        try:
            read = nginx_conf.read(conf)
        except nginx_conf.ConfError as error:
            return [failed("conf.file", str(error)), *(unseen(each, "conf.file failed") for each in nginx_conf.JUDGED)]
        return [
            ok("conf.file", str(conf)),
            *nginx_conf.judge(read, terminal.idle_timeout + terminal.idle_grace),
        ]


def _made_up() -> UUID:
    return new_id(datetime.now(UTC))


@asynccontextmanager
async def _closing(database: Database) -> AsyncIterator[Database]:
    try:
        yield database
    finally:
        await database.close()
