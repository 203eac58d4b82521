"""Names every real adapter once: what a node, a worker and the command line are made of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, WebSocketRoute

from bothy_server.cluster.adapters.local import LocalSignals
from bothy_server.cluster.adapters.postgres.listener import EphemeralListener
from bothy_server.cluster.adapters.postgres.signals import Notify, NotifySignals, notifier
from bothy_server.cluster.app.dispatcher import Dispatcher
from bothy_server.cluster.app.inbox import InboxLimits
from bothy_server.cluster.domain import listener as listener_rules
from bothy_server.cluster.domain.signal import SignalTable
from bothy_server.hosts.adapters.http import routes as host_routes
from bothy_server.hosts.adapters.postgres.hosts import PostgresHostStore
from bothy_server.hosts.adapters.sockets.control import ControlLimits, ControlSockets
from bothy_server.hosts.app.control import Control
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.directory import Directory
from bothy_server.hosts.app.host_signals import HostSignals
from bothy_server.hosts.app.identify import Identify
from bothy_server.hosts.app.pairing import Pairing, PairingLimits
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.domain.presence import PresenceLimits
from bothy_server.hosts.domain.signals import HostClose, HostGone, HostPresent
from bothy_server.identity.adapters.http import routes as identity_routes
from bothy_server.identity.adapters.keystore.store import KeyStoreError
from bothy_server.identity.adapters.keystore.tokens import KeyStoreTokens, TokenLimits
from bothy_server.identity.adapters.postgres.challenges import PostgresChallengeStore
from bothy_server.identity.adapters.postgres.persons import PostgresPersonStore
from bothy_server.identity.adapters.postgres.rights import PostgresRightStore
from bothy_server.identity.app.api import Callers
from bothy_server.identity.app.login import Login, LoginLimits
from bothy_server.identity.app.ports import ChallengeStore, PersonStore, RightStore
from bothy_server.identity.app.step_up import StepUp, StepUpLimits
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.unit import Signal, StorageUnavailable
from bothy_server.platform.clock import ClusterClock
from bothy_server.platform.database import Database
from bothy_server.platform.event_log import EventLogTail, TailLimits, prune
from bothy_server.platform.health import Health, internal_app
from bothy_server.platform.http import SecurityHeaders, exception_handlers
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.serving import listening
from bothy_server.platform.setting_values import Address
from bothy_server.platform.settings import Settings
from bothy_server.platform.telemetry import Metrics
from bothy_server.platform.unit_of_work import SqlUnitOfWork, StoreFactories
from bothy_server.terminal.adapters.http import routes as terminal_routes
from bothy_server.terminal.adapters.otel.telemetry import OtelTelemetry
from bothy_server.terminal.adapters.postgres.sessions import PostgresSessionStore
from bothy_server.terminal.adapters.sockets.forwarder import ForwarderLimits
from bothy_server.terminal.adapters.sockets.pump import StreamPump
from bothy_server.terminal.adapters.sockets.side import SideSockets
from bothy_server.terminal.app.admission import Admission
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.app.open_session import SessionLimits, Sessions
from bothy_server.terminal.app.ports import SessionStore
from bothy_server.terminal.app.session_signals import SessionSignals
from bothy_server.terminal.app.sweep import Sweep, SweepLimits
from bothy_server.terminal.app.switchboard import Bounds, Switchboard
from bothy_server.terminal.domain import rendezvous
from bothy_server.terminal.domain.signals import SessionOpen, SessionPaired, SessionRedial
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import HostLimits
from bothy_wire.ids import NodeId
from bothy_wire.limits import CONTROL_PATH, data_path, stream_path

_log = logging.getLogger(__name__)

STORES: StoreFactories = {
    PersonStore: PostgresPersonStore,
    ChallengeStore: PostgresChallengeStore,
    RightStore: PostgresRightStore,
    HostStore: PostgresHostStore,
    SessionStore: PostgresSessionStore,
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
    """A database that was reached and has our schema, and its clock.

    Raises ``SchemaError`` or ``StorageUnavailable``: a process that cannot work does not start.
    """
    database, clock = Database(settings.database), ClusterClock()
    try:
        await database.check_schema()
        await clock.synchronize(database)
        yield Foundation(settings, database, clock)
    finally:
        await database.close()


# ---- the command line ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Admin:
    """Use cases that `bothy-server` calls without a node."""

    login: Login
    pairing: Pairing


@asynccontextmanager
async def admin(settings: Settings) -> AsyncIterator[Admin]:
    """The use cases of the command line on this database."""
    async with foundation(settings) as base:
        uow = SqlUnitOfWork(base.database, STORES, _outbound(base, notifier(base.database)))
        tokens = _tokens(base)
        host_sessions = HostSessions(uow, ControlLinks())
        yield Admin(_login(base, uow, tokens), _pairing(base, uow, tokens, host_sessions))


# ---- a worker -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def worker(settings: Settings, parts: Lifecycle) -> AsyncIterator[Address]:
    """Sweeps, and an internal listener. Signals go out, none come in."""
    async with foundation(settings) as base:
        uow = SqlUnitOfWork(base.database, STORES, _outbound(base, notifier(base.database)))
        parts.own("sweep", _sweep(base, uow).run())
        parts.own("clock", _keep_time(base))
        async with _internal(
            base, Health(base.database, base.clock, settings.cluster.clock_warn), Metrics()
        ) as internal:
            yield internal


# ---- a node -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """One api node while it runs."""

    id: NodeId
    public: Address
    internal: Address
    switchboard: Switchboard
    control_sockets: ControlSockets
    links: ControlLinks
    presence: Presence
    health: Health


@asynccontextmanager
async def node(settings: Settings, parts: Lifecycle) -> AsyncIterator[Node]:
    """An api node, in the order of its dependencies; left in the reverse order, sockets first.

    ``parts`` owns the tasks that run as long as the node. With the role ``all`` the sweep is one of them.
    """
    async with foundation(settings) as base, _tasks() as tasks:
        database, clock = base.database, base.clock
        origins = settings.server.public_origins
        node_id = NodeId(new_id(clock.now()))
        metrics, tokens, links = Metrics(), _tokens(base), ControlLinks()
        notify = notifier(database)
        # Signals need the dispatcher, whose handlers need the unit of work, which needs signals: looked up when one comes.
        def deliver(committed: Sequence[Signal]) -> None:
            dispatcher.deliver(committed)

        multi = settings.cluster.mode == "multi"
        signals = _notify_signals(base, notify) if multi else LocalSignals(deliver)
        uow = SqlUnitOfWork(database, STORES, signals)
        presence = Presence(links, signals, clock, _presence_limits(settings))
        host_sessions = HostSessions(uow, links)
        switchboard = Switchboard(
            uow=uow,
            tokens=tokens,
            clock=clock,
            pump=StreamPump(),
            control_links=links,
            signals=signals,
            telemetry=OtelTelemetry(metrics),
            limits=_rendezvous_limits(settings),
            bounds=Bounds(settings.terminal.max_pending_per_node, settings.terminal.max_expectations_per_node),
            storage_retry=settings.database.retry_after,
            tasks=tasks,
        )
        host_signals = HostSignals(links, presence)
        session_signals = SessionSignals(uow, switchboard, host_sessions, links)

        # One handler for both modes (docs/spec/cluster.md, Mode).
        dispatcher = Dispatcher(
            SIGNALS,
            {**dict.fromkeys(TERMINAL_SIGNALS, (session_signals,)), **dict.fromkeys(HOST_SIGNALS, (host_signals,))},
            clock,
            _inbox_limits(settings),
        )
        parts.own("dispatcher", dispatcher.run())
        if isinstance(signals, NotifySignals):
            listener = EphemeralListener(
                database, dispatcher, notify, clock, _listener_limits(settings), presence.hearing
            )
            metrics.gauge(
                "bothy.cluster.listener.echo.age",
                "Since the listener last heard itself",
                lambda: listener.echo_age_s,
                "s",
            )
            parts.own("signals", signals.run())
            parts.own("terminal_ephemeral", listener.run())
            await listener.started.wait()

        # The tail hears changes before the first socket is accepted.
        tail = EventLogTail(database, clock, _tail_limits(settings))
        tail.subscribe(host_signals)
        tail.subscribe(session_signals)
        parts.own("event_tail", tail.run())
        await tail.settled()

        control_sockets = ControlSockets(
            Identify(uow, tokens, clock, origins),
            Control(uow, clock, presence, host_sessions, settings.hosts.last_seen_interval),
            links,
            clock,
            tokens.jwks,
            _control_limits(settings),
        )
        side_sockets = SideSockets(
            Admission(uow, tokens, origins),
            switchboard,
            clock,
            origins,
            settings.wire.identify_timeout,
            _forwarder_limits(settings),
        )
        parts.own("clock", _keep_time(base))
        parts.own("keys", _keep_keys(base, tokens, control_sockets))
        if settings.server.role == "all":
            parts.own("sweep", _sweep(base, uow).run())
        _gauges(metrics, switchboard, control_sockets, side_sockets, dispatcher)

        callers, body = Callers(uow, tokens), settings.server.max_body_bytes
        step_up = StepUp(
            uow, clock, origins, StepUpLimits(settings.identity.challenge_ttl, settings.identity.step_up_window)
        )
        sessions = Sessions(uow, tokens, clock, presence, _session_limits(settings))
        pairing = _pairing(base, uow, tokens, host_sessions)
        routes: list[BaseRoute] = [
            WebSocketRoute(CONTROL_PATH, control_sockets.serve),
            WebSocketRoute(data_path("{session_id}"), side_sockets.data),
            WebSocketRoute(stream_path("{session_id}"), side_sockets.stream),
            *identity_routes.routes(_login(base, uow, tokens), step_up, tokens, callers, body),
            *host_routes.routes(Directory(uow, presence), pairing, callers, body),
            *terminal_routes.routes(sessions, callers, node_id, body),
        ]
        app = Starlette(
            routes=routes,
            middleware=[Middleware(SecurityHeaders)],
            exception_handlers=dict(exception_handlers(settings.database.retry_after)),
        )
        health = Health(database, clock, settings.cluster.clock_warn)
        linger = settings.terminal.close_linger
        async with (
            _internal(base, health, metrics) as internal,
            listening(app, settings.server.listen, settings.wire.max_unidentified_frame_bytes, linger) as public,
        ):
            try:
                yield Node(node_id, public, internal, switchboard, control_sockets, links, presence, health)
            finally:
                health.leave()
                control_sockets.close_all(CloseCode.RESTART, "the node is leaving")
                switchboard.close_all(CloseCode.RESTART, "the node is leaving")
                await switchboard.emptied(linger)
                side_sockets.heartbeat.stop()


def _outbound(base: Foundation, notify: Notify) -> LocalSignals | NotifySignals:
    """The transport of a process that hears nothing: a worker, the command line."""
    if base.settings.cluster.mode == "single":
        return LocalSignals(lambda _: None)
    return _notify_signals(base, notify)


def _notify_signals(base: Foundation, notify: Notify) -> NotifySignals:
    return NotifySignals(
        SIGNALS,
        notify,
        base.clock,
        max_waiting=base.settings.cluster.max_waiting_signals,
        repeats_per_minute=_per_minute(base.settings),
    )


def _tokens(base: Foundation) -> KeyStoreTokens:
    settings = base.settings
    limits = TokenLimits(
        settings.identity.access_token_ttl, settings.terminal.session_token_ttl, settings.identity.clock_leeway
    )
    return KeyStoreTokens(settings.secrets.signing_key_dir, base.clock, limits)


def _login(base: Foundation, uow: SqlUnitOfWork, tokens: KeyStoreTokens) -> Login:
    settings = base.settings
    limits = LoginLimits(settings.identity.invite_ttl, settings.identity.challenge_ttl)
    return Login(uow, tokens, base.clock, settings.server.public_origins, limits)


def _pairing(base: Foundation, uow: SqlUnitOfWork, tokens: KeyStoreTokens, events: HostSessions) -> Pairing:
    settings = base.settings
    limits = PairingLimits(settings.hosts.pairing_code_ttl, settings.hosts.pairing)
    return Pairing(uow, tokens, base.clock, settings.server.public_origins, events, limits)


def _sweep(base: Foundation, uow: SqlUnitOfWork) -> Sweep:
    terminal = base.settings.terminal

    async def prune_challenges() -> int:
        async with uow() as unit:
            return await unit.of(ChallengeStore).prune()

    async def prune_events() -> int:
        return await prune(base.database, base.settings.event_log.retention, base.settings.event_log.batch)

    limits = SweepLimits(terminal.sweep_interval, terminal.open_timeout, terminal.start_timeout)
    return Sweep(uow, base.clock, limits, [prune_challenges, prune_events])


@asynccontextmanager
async def _internal(base: Foundation, health: Health, metrics: Metrics) -> AsyncIterator[Address]:
    settings = base.settings
    app = internal_app(health, metrics)
    async with listening(app, settings.server.internal_listen, settings.wire.max_unidentified_frame_bytes, 1) as address:
        yield address


@asynccontextmanager
async def _tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """A group for short work; what is still under way at the end is cancelled."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
            raise _Over
    except* _Over:
        pass


class _Over(Exception):  # noqa: N818 - ends a task group
    """The block is over."""


async def _keep_time(base: Foundation) -> None:
    """Read the database's clock now and then; while it is away the last offset holds."""
    while True:
        await base.clock.sleep_until(base.clock.monotonic() + base.settings.cluster.clock_interval)
        try:
            await base.clock.synchronize(base.database)
        except StorageUnavailable:
            continue
        skew = base.clock.skew
        if skew is not None and abs(skew) > base.settings.cluster.clock_warn:
            _log.warning("clock differs from the database", extra={"bothy.clock.skew": round(skew, 1)})


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


def _gauges(
    metrics: Metrics,
    switchboard: Switchboard,
    control_sockets: ControlSockets,
    side_sockets: SideSockets,
    dispatcher: Dispatcher,
) -> None:
    heartbeat = side_sockets.heartbeat
    metrics.gauge("bothy.terminal.relay.sides", "Sides on this node", lambda: switchboard.sides)
    metrics.gauge("bothy.terminal.relay.pairs", "Pairs on this node", lambda: switchboard.pairs)
    metrics.gauge("bothy.terminal.relay.forwarded", "Payload forwarded", lambda: heartbeat.forwarded_bytes, "By")
    metrics.gauge("bothy.hosts.control.connections", "Control connections", lambda: control_sockets.connections)
    metrics.gauge("bothy.cluster.signals.malformed", "Signals dropped as malformed", lambda: dispatcher.malformed)


def _per_minute(settings: Settings) -> int:
    rate = settings.log.repeat_rate
    return max(1, round(rate.count * 60 / rate.period_s))


def _inbox_limits(settings: Settings) -> InboxLimits:
    return InboxLimits(settings.cluster.max_waiting_signals, settings.database.retry_after, _per_minute(settings))


def _listener_limits(settings: Settings) -> listener_rules.Limits:
    database = settings.database
    return listener_rules.Limits(
        database.listen_reconnect_backoff_cap, database.listen_watchdog_interval, database.listen_echo_timeout
    )


def _tail_limits(settings: Settings) -> TailLimits:
    return TailLimits(
        settings.event_log.poll_interval,
        settings.database.listen_reconnect_backoff_cap,
        settings.database.transaction_timeout,
        settings.event_log.batch,
    )


def _presence_limits(settings: Settings) -> PresenceLimits:
    return PresenceLimits(settings.terminal.host_heartbeat_interval, settings.terminal.host_heartbeat_miss_limit)


def _rendezvous_limits(settings: Settings) -> rendezvous.Limits:
    terminal = settings.terminal
    return rendezvous.Limits(
        terminal.open_timeout, terminal.start_timeout, terminal.redial_after, terminal.stall_timeout
    )


def _session_limits(settings: Settings) -> SessionLimits:
    terminal = settings.terminal
    return SessionLimits(
        terminal.max_sessions_per_person, terminal.max_sessions_per_host, terminal.max_duration, terminal.resume_window
    )


def _control_limits(settings: Settings) -> ControlLimits:
    terminal, wire = settings.terminal, settings.wire
    return ControlLimits(
        wire.identify_timeout,
        wire.max_frame_bytes,
        terminal.host_heartbeat_interval,
        terminal.host_heartbeat_miss_limit,
        settings.hosts.max_waiting_frames,
        terminal.close_linger,
        HostLimits(
            idle_timeout_s=terminal.idle_timeout,
            idle_grace_s=terminal.idle_grace,
            detach_grace_s=terminal.detach_grace,
            max_duration_s=terminal.max_duration,
        ),
    )


def _forwarder_limits(settings: Settings) -> ForwarderLimits:
    wire, relay, terminal = settings.wire, settings.relay, settings.terminal
    return ForwarderLimits(
        max_frame_bytes=wire.max_frame_bytes,
        max_unidentified_frame_bytes=wire.max_unidentified_frame_bytes,
        buffer_high_bytes=relay.buffer_high_bytes,
        buffer_low_bytes=relay.buffer_low_bytes,
        socket_buffer_bytes=relay.socket_buffer_bytes,
        stall_timeout=terminal.stall_timeout,
        close_linger=terminal.close_linger,
        ping_interval=wire.ping_interval,
        ping_timeout=wire.ping_timeout,
    )
