"""Names every real adapter once: what a node, a worker and the command line are made of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, WebSocketRoute

from bothy_server import limits
from bothy_server.cluster.adapters.local import LocalSignals
from bothy_server.cluster.adapters.postgres.listener import EphemeralListener
from bothy_server.cluster.adapters.postgres.nodes import PostgresNodeStore
from bothy_server.cluster.adapters.postgres.signals import Notify, NotifySignals, notifier
from bothy_server.cluster.app.dispatcher import Dispatcher
from bothy_server.cluster.app.node_registry import NodeDirectory, NodeRegistry, NodeStore
from bothy_server.cluster.app.ports import SignalHandler
from bothy_server.cluster.domain import node as cluster_node
from bothy_server.cluster.domain.signal import SignalTable
from bothy_server.hosts.adapters.http import routes as host_routes
from bothy_server.hosts.adapters.postgres.hosts import PostgresHostStore
from bothy_server.hosts.adapters.sockets.control import ControlSockets
from bothy_server.hosts.app.control import Control
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.directory import Directory
from bothy_server.hosts.app.host_signals import HostSignals
from bothy_server.hosts.app.identify import Identify
from bothy_server.hosts.app.pairing import Pairing
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.app.transitions import Transitions
from bothy_server.hosts.app.verdict import Verdict
from bothy_server.hosts.domain.signals import HostClose, HostGone, HostPresent
from bothy_server.identity.adapters.http import routes as identity_routes
from bothy_server.identity.adapters.keystore.store import KeyStoreError
from bothy_server.identity.adapters.keystore.tokens import KeyStoreTokens
from bothy_server.identity.adapters.postgres.challenges import PostgresChallengeStore
from bothy_server.identity.adapters.postgres.persons import PostgresPersonStore
from bothy_server.identity.adapters.postgres.rights import PostgresRightStore
from bothy_server.identity.app.api import Callers
from bothy_server.identity.app.login import Login
from bothy_server.identity.app.ports import ChallengeStore, PersonStore, RightStore, TokenInvalid
from bothy_server.identity.app.step_up import StepUp
from bothy_server.identity.domain.tokens import ProbeToken
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.unit import Signal
from bothy_server.platform.clock import ClusterClock
from bothy_server.platform.database import Database
from bothy_server.platform.edge_probe import EdgeProbe
from bothy_server.platform.event_log import EventLogTail, prune
from bothy_server.platform.health import Health, internal_app
from bothy_server.platform.http import SecurityHeaders, exception_handlers
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.patience import patiently
from bothy_server.platform.serving import Listener
from bothy_server.platform.setting_values import Address
from bothy_server.platform.settings import Settings
from bothy_server.platform.telemetry import Metrics
from bothy_server.platform.unit_of_work import SqlUnitOfWork, StoreFactories
from bothy_server.terminal.adapters.http import routes as terminal_routes
from bothy_server.terminal.adapters.otel.telemetry import OtelTelemetry
from bothy_server.terminal.adapters.postgres.sessions import PostgresSessionStore
from bothy_server.terminal.adapters.postgres.sweep import PostgresSweepStore
from bothy_server.terminal.adapters.sockets.pump import StreamPump
from bothy_server.terminal.adapters.sockets.side import SideSockets
from bothy_server.terminal.app.admission import Admission
from bothy_server.terminal.app.earlier_decision import EarlierDecision
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.app.open_session import Sessions
from bothy_server.terminal.app.owner_sessions import OwnerSessions
from bothy_server.terminal.app.ports import SessionStore
from bothy_server.terminal.app.session_signals import SessionSignals
from bothy_server.terminal.app.sweep import Sweep, SweepStore
from bothy_server.terminal.app.switchboard import Switchboard
from bothy_server.terminal.app.traffic import Traffic
from bothy_server.terminal.domain.signals import SessionOpen, SessionPaired, SessionRedial
from bothy_wire.close_codes import CloseCode
from bothy_wire.ids import NodeId
from bothy_wire.limits import CONTROL_PATH, data_path, stream_path

_log = logging.getLogger(__name__)

STORES: StoreFactories = {
    PersonStore: PostgresPersonStore,
    ChallengeStore: PostgresChallengeStore,
    RightStore: PostgresRightStore,
    HostStore: PostgresHostStore,
    SessionStore: PostgresSessionStore,
    SweepStore: PostgresSweepStore,
    NodeStore: PostgresNodeStore,
}
TERMINAL_SIGNALS = (SessionOpen, SessionPaired, SessionRedial)
HOST_SIGNALS = (HostClose, HostPresent, HostGone)
SIGNALS = SignalTable((*TERMINAL_SIGNALS, *HOST_SIGNALS))


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


# ---- the command line ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Admin:
    """Use cases that `bothy-server` calls without a node."""

    login: Login
    pairing: Pairing
    transitions: Transitions
    nodes: NodeDirectory


@asynccontextmanager
async def admin(settings: Settings) -> AsyncIterator[Admin]:
    """The use cases of the command line on this database."""
    async with foundation(settings) as base:
        await reach(base)
        uow = SqlUnitOfWork(base.database, STORES, _outbound(base, notifier(base.database)))
        tokens = _tokens(base)
        host_sessions = HostSessions(uow, ControlLinks())
        yield Admin(
            _login(base, uow, tokens),
            _pairing(base, uow, tokens, host_sessions),
            Transitions(uow, host_sessions),
            NodeDirectory(uow, limits.registry(settings)),
        )


# ---- a worker -----------------------------------------------------------------------------------------------------


async def start_worker(settings: Settings, parts: Lifecycle) -> Address:
    """Sweeps, and an internal listener, whose address is returned. Signals go out, none come in."""
    base = await parts.start("foundation", foundation(settings))
    health, internal = await _wait_in_sight(base, parts, Metrics())
    uow = SqlUnitOfWork(base.database, STORES, _outbound(base, notifier(base.database)))
    parts.own("sweep", _sweep(base, uow).run())
    parts.own("health", health.run())
    await _enter(base, parts, uow, health, _node(base, None), cluster_node.Figures)
    return internal


# ---- a node -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """One api node while it runs."""

    id: NodeId
    public: Address
    internal: Address
    switchboard: Switchboard
    control_sockets: ControlSockets
    presence: Presence


async def start_node(settings: Settings, parts: Lifecycle) -> Node:
    """An api node: each part after those that it needs; ``parts`` stops them in reverse, the sockets first."""
    base = await parts.start("foundation", foundation(settings))
    tokens, metrics = _tokens(base), Metrics()  # keys that are missing are told before anything is waited for
    health, internal = await _wait_in_sight(base, parts, metrics)
    core = _core(base, tokens, metrics, await _tasks(parts))
    await parts.start("switchboard", _quiet_at_the_end(core.switchboard))
    parts.own("traffic", core.traffic.run())
    parts.own("presence", core.presence.run())
    listener = await _hear(base, core, parts)
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
    parts.own("keys", _keep_keys(base, core.tokens, control_sockets))
    if settings.server.role == "all":
        parts.own("sweep", _sweep(base, core.uow).run())
    _gauges(core, control_sockets, side_sockets)

    parts.own("health", health.run(core.switchboard.storage_lost))
    node_id = NodeId(new_id(base.clock.now()))
    app = _public_app(base, core, node_id, control_sockets, side_sockets)
    linger = settings.terminal.close_linger
    public = await _serve(parts, "public_listener", Listener(app, settings.server.listen, limits.http(settings)))
    await parts.start("sockets", _leaving(health, core.switchboard, control_sockets, side_sockets, linger))
    figures = partial(_figures, base, core, side_sockets, listener)
    await _enter(base, parts, core.uow, health, _node(base, public, node_id), figures)
    return Node(node_id, public, internal, core.switchboard, control_sockets, core.presence)


@dataclass(frozen=True, slots=True)
class _Core:
    """The use cases of a node and what they share."""

    uow: SqlUnitOfWork
    tokens: KeyStoreTokens
    links: ControlLinks
    presence: Presence
    host_sessions: HostSessions
    switchboard: Switchboard
    traffic: Traffic
    metrics: Metrics
    telemetry: OtelTelemetry
    signals: LocalSignals | NotifySignals
    tail: EventLogTail
    dispatcher: Dispatcher
    handlers: tuple[HostSignals, SessionSignals]
    notify: Notify


def _core(base: Foundation, tokens: KeyStoreTokens, metrics: Metrics, tasks: asyncio.TaskGroup) -> _Core:
    settings, clock = base.settings, base.clock
    links, notify = ControlLinks(), notifier(base.database)
    tail, telemetry = EventLogTail(base.database, clock, limits.tail(settings)), OtelTelemetry(metrics)

    # Signals need the dispatcher, whose handlers need the unit of work, which needs signals: looked up when one comes.
    def deliver(committed: Sequence[Signal]) -> None:
        dispatcher.deliver(committed)

    multi = settings.cluster.mode == "multi"
    signals = _notify_signals(base, notify) if multi else LocalSignals(deliver)
    uow = SqlUnitOfWork(base.database, STORES, signals)
    presence = Presence(links, signals, clock, limits.presence(settings), settings.terminal.presence_flush_interval)
    host_sessions = HostSessions(uow, links)
    traffic = Traffic(uow, clock, limits.traffic(settings))
    switchboard = Switchboard(
        uow=uow,
        tokens=tokens,
        clock=clock,
        pump=StreamPump(),
        control_links=links,
        signals=signals,
        telemetry=telemetry,
        limits=limits.meeting(settings),
        bounds=limits.bounds(settings),
        storage_retry=settings.database.retry_after,
        earlier=EarlierDecision(tail, clock, settings.terminal.stale_right_max),
        traffic=traffic,
        tasks=tasks,
    )
    of_hosts, of_sessions = HostSignals(links, presence), SessionSignals(uow, switchboard, host_sessions, links)
    # One handler for both modes (docs/spec/cluster.md, Mode).
    routes: dict[type[Signal], tuple[SignalHandler]] = dict.fromkeys(TERMINAL_SIGNALS, (of_sessions,))
    routes |= dict.fromkeys(HOST_SIGNALS, (of_hosts,))
    dispatcher = Dispatcher(SIGNALS, routes, clock, limits.inbox(settings))
    handlers = of_hosts, of_sessions
    return _Core(
        uow,
        tokens,
        links,
        presence,
        host_sessions,
        switchboard,
        traffic,
        metrics,
        telemetry,
        signals,
        tail,
        dispatcher,
        handlers,
        notify,
    )


async def _hear(base: Foundation, core: _Core, parts: Lifecycle) -> EphemeralListener | None:
    """Signals and the event log are heard before the first socket is accepted; the listener, where there is one."""
    settings, clock = base.settings, base.clock
    listener = None
    parts.own("dispatcher", core.dispatcher.run())
    if isinstance(core.signals, NotifySignals):
        parts.own("signals", core.signals.run())
        listener = EphemeralListener(
            base.database, core.dispatcher, core.notify, clock, limits.listener(settings), core.presence.hearing
        )
        meaning = "Since the listener last heard itself"
        core.metrics.gauge("bothy.cluster.listener.echo.age", meaning, lambda: listener.echo_age_s, "s")
        parts.own(listener.name, listener.run())
        await listener.started.wait()
    for handler in core.handlers:
        core.tail.subscribe(handler)
    parts.own("event_tail", core.tail.run())
    await core.tail.settled()
    return listener


def _public_app(
    base: Foundation, core: _Core, node_id: NodeId, control_sockets: ControlSockets, side_sockets: SideSockets
) -> Starlette:
    settings, clock, uow, tokens = base.settings, base.clock, core.uow, core.tokens
    callers, body = Callers(uow, tokens), settings.server.max_body_bytes
    step_up = StepUp(uow, clock, settings.server.public_origins, limits.step_up(settings))
    sessions = Sessions(uow, tokens, clock, core.presence, limits.sessions(settings))
    core.metrics.gauge("bothy.terminal.sessions.opened", "Sessions that this node opened", lambda: sessions.opened)
    pairing = _pairing(base, uow, tokens, core.host_sessions)
    routes: list[BaseRoute] = [
        WebSocketRoute(CONTROL_PATH, control_sockets.serve),
        WebSocketRoute(data_path("{session_id}"), side_sockets.data),
        WebSocketRoute(stream_path("{session_id}"), side_sockets.stream),
        *identity_routes.routes(_login(base, uow, tokens), step_up, tokens, callers, body),
        *host_routes.routes(
            Directory(uow, core.presence), pairing, Transitions(uow, core.host_sessions), callers, body
        ),
        *terminal_routes.routes(
            sessions, OwnerSessions(uow), callers, node_id, body, _probe(base, tokens, node_id).answer
        ),
    ]
    handlers = dict(exception_handlers(settings.database.retry_after))
    app = Starlette(routes=routes, middleware=[Middleware(SecurityHeaders)], exception_handlers=handlers)
    app.router.redirect_slashes = False  # a path has one spelling, and an answer never sends a client elsewhere
    return app


def _probe(base: Foundation, tokens: KeyStoreTokens, node_id: NodeId) -> EdgeProbe:
    def hold_of(token: str) -> float | None:
        try:
            return tokens.read(ProbeToken, token).hold_s
        except TokenInvalid:
            return None

    server = base.settings.server
    return EdgeProbe(str(node_id), hold_of, server.trusted_proxies, server.public_origins, lambda: base.clock.skew)


@asynccontextmanager
async def _quiet_at_the_end(switchboard: Switchboard) -> AsyncIterator[None]:
    """After all that feeds it and before its tasks, which no timer may add to any more."""
    yield
    switchboard.stop()


@asynccontextmanager
async def _leaving(
    health: Health, switchboard: Switchboard, control_sockets: ControlSockets, side_sockets: SideSockets, linger: float
) -> AsyncIterator[None]:
    """At the end every socket is told that the node leaves; those that took it are gone within ``linger`` seconds."""
    yield
    health.leave()
    control_sockets.close_all(CloseCode.RESTART, "the node is leaving")
    switchboard.close_all(CloseCode.RESTART, "the node is leaving")
    await switchboard.emptied(linger)
    side_sockets.heartbeat.stop()


# ---- shared parts -------------------------------------------------------------------------------------------------


def _outbound(base: Foundation, notify: Notify) -> LocalSignals | NotifySignals:
    """The transport of a process that hears nothing: a worker, the command line."""
    if base.settings.cluster.mode == "single":
        return LocalSignals(lambda _: None)
    return _notify_signals(base, notify)


def _notify_signals(base: Foundation, notify: Notify) -> NotifySignals:
    return NotifySignals(SIGNALS, notify, max_waiting=base.settings.cluster.max_waiting_signals)


def _tokens(base: Foundation) -> KeyStoreTokens:
    return KeyStoreTokens(base.settings.secrets.signing_key_dir, base.clock, limits.tokens(base.settings))


def _login(base: Foundation, uow: SqlUnitOfWork, tokens: KeyStoreTokens) -> Login:
    settings = base.settings
    return Login(uow, tokens, base.clock, settings.server.public_origins, limits.login(settings))


def _pairing(base: Foundation, uow: SqlUnitOfWork, tokens: KeyStoreTokens, events: HostSessions) -> Pairing:
    settings = base.settings
    return Pairing(uow, tokens, base.clock, settings.server.public_origins, events, limits.pairing(settings))


def _sweep(base: Foundation, uow: SqlUnitOfWork) -> Sweep:
    async def prune_proofs() -> int:
        async with uow() as unit:
            return await unit.of(ChallengeStore).prune()

    async def prune_codes() -> int:
        async with uow() as unit:
            return await unit.of(HostStore).prune_codes()

    async def prune_events() -> int:
        return await prune(base.database, base.settings.event_log.retention, base.settings.event_log.batch)

    nodes = NodeDirectory(uow, limits.registry(base.settings))
    return Sweep(uow, base.clock, limits.sweep(base.settings), [prune_proofs, prune_codes, prune_events, nodes.prune])


async def _wait_in_sight(base: Foundation, parts: Lifecycle, metrics: Metrics) -> tuple[Health, Address]:
    """The internal listener, and then the database: a process that waits for it is alive and says so."""
    health = Health(base.database, base.clock, base.settings.cluster.clock_warn)
    app, address = internal_app(health, metrics), base.settings.server.internal_listen
    internal = await _serve(parts, "internal_listener", Listener(app, address, limits.http(base.settings)))
    await _patiently(base, lambda: reach(base))
    return health, internal


async def _patiently(base: Foundation, act: Callable[[], Awaitable[None]]) -> None:
    await patiently(act, base.clock, base.settings.database.listen_reconnect_backoff_cap)


async def _serve(parts: Lifecycle, name: str, listener: Listener) -> Address:
    parts.own(name, listener.run())
    await listener.ready.wait()
    return listener.address


async def _tasks(parts: Lifecycle) -> asyncio.TaskGroup:
    """A group for short work; what is still under way at the end is cancelled. A defect in it ends the process."""
    opened: asyncio.Future[asyncio.TaskGroup] = asyncio.get_running_loop().create_future()

    async def hold() -> None:
        async with asyncio.TaskGroup() as tasks:
            opened.set_result(tasks)
            await asyncio.Event().wait()

    parts.own("tasks", hold())
    return await opened


def _node(base: Foundation, public: Address | None, node_id: NodeId | None = None) -> cluster_node.Node:
    made = node_id or NodeId(new_id(base.clock.now()))
    origin = None if public is None else f"http://{public}"
    return cluster_node.Node(made, base.settings.server.role, origin, version("bothy-relay"))


async def _enter(
    base: Foundation,
    parts: Lifecycle,
    uow: SqlUnitOfWork,
    health: Health,
    node: cluster_node.Node,
    figures: Callable[[], cluster_node.Figures],
) -> None:
    """Enter the table of nodes, and leave it as the first thing at the end."""
    made = NodeRegistry(uow, base.clock, node, figures, lambda: _synchronize(base), limits.registry(base.settings))

    @asynccontextmanager
    async def entered() -> AsyncIterator[None]:
        await _patiently(base, made.enter)
        health.enter()
        yield
        health.leave()
        await made.leave()

    health.report("keys", made.keys)
    await parts.start("node", entered())
    parts.own("node_status", made.run())


async def _synchronize(base: Foundation) -> None:
    await base.clock.synchronize(base.database)
    skew = base.clock.skew
    if skew is not None and abs(skew) > base.settings.cluster.clock_warn:
        _log.warning("clock differs from the database", extra={"bothy.clock.skew": round(skew, 1)})


def _figures(
    base: Foundation, core: _Core, side_sockets: SideSockets, listener: EphemeralListener | None
) -> cluster_node.Figures:
    current_at = core.tail.last_current_at
    return cluster_node.Figures(
        sides=core.switchboard.sides,
        pairs=core.switchboard.pairs,
        pending=core.switchboard.pending,
        unpaired_client=core.telemetry.unpaired_so_far("client"),
        unpaired_host=core.telemetry.unpaired_so_far("host"),
        echo_age_s=None if listener is None else listener.echo_age_s,
        tail_lag_s=None if current_at is None else base.clock.monotonic() - current_at,
        forwarded_bytes=side_sockets.heartbeat.forwarded_bytes,
        key_ids=core.tokens.key_ids,
        signs_with=core.tokens.signs_with,
    )


async def _keep_keys(base: Foundation, tokens: KeyStoreTokens, control_sockets: ControlSockets) -> None:
    """Read the key store now and then; hosts are told when it changed."""
    while True:
        await base.clock.sleep_until(base.clock.monotonic() + base.settings.secrets.reload_interval)
        try:
            changed = await asyncio.to_thread(tokens.reload)
        except KeyStoreError as error:
            _log.error("key store unreadable, the keys in use stay", extra={"error.type": type(error).__name__})
            continue
        if changed:
            control_sockets.keys_changed()


def _gauges(core: _Core, control_sockets: ControlSockets, side_sockets: SideSockets) -> None:
    gauge, switchboard, heartbeat = core.metrics.gauge, core.switchboard, side_sockets.heartbeat
    gauge("bothy.terminal.relay.sides", "Sides on this node", lambda: switchboard.sides)
    gauge("bothy.terminal.relay.pairs", "Pairs on this node", lambda: switchboard.pairs)
    gauge("bothy.terminal.relay.forwarded", "Payload forwarded", lambda: heartbeat.forwarded_bytes, "By")
    gauge("bothy.hosts.control.connections", "Control connections", lambda: control_sockets.connections)
    gauge("bothy.cluster.signals.malformed", "Signals dropped as malformed", lambda: core.dispatcher.malformed)
