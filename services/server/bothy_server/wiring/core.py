"""The use cases of a node, and what they hear."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bothy_server import limits
from bothy_server.cluster.adapters.local import LocalSignals
from bothy_server.cluster.adapters.postgres.listener import EphemeralListener
from bothy_server.cluster.adapters.postgres.signals import Notify, NotifySignals, notifier
from bothy_server.cluster.app.dispatcher import Dispatcher
from bothy_server.cluster.app.ports import SignalHandler
from bothy_server.events.app.feeds import Feeds
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.host_signals import HostSignals
from bothy_server.hosts.app.presence import Presence
from bothy_server.identity.adapters.keystore.tokens import KeyStoreTokens
from bothy_server.kernel.unit import Signal
from bothy_server.platform.event_log import EventLogTail
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.telemetry import Metrics
from bothy_server.platform.unit_of_work import SqlUnitOfWork
from bothy_server.terminal.adapters.otel.telemetry import OtelTelemetry
from bothy_server.terminal.adapters.sockets.pump import StreamPump
from bothy_server.terminal.app.earlier_decision import EarlierDecision
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.app.session_signals import SessionSignals
from bothy_server.terminal.app.switchboard import Switchboard
from bothy_server.terminal.app.traffic import Traffic
from bothy_server.wiring.process import STORES, Foundation
from bothy_server.wiring.signals import HOST_SIGNALS, SIGNALS, TERMINAL_SIGNALS, notify_signals


@dataclass(frozen=True, slots=True)
class Core:
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
    feeds: Feeds
    dispatcher: Dispatcher
    handlers: tuple[HostSignals, SessionSignals]
    notify: Notify


def node_core(base: Foundation, tokens: KeyStoreTokens, metrics: Metrics, tasks: asyncio.TaskGroup) -> Core:
    """Nothing of it runs yet; ``tasks`` holds its short work."""
    settings, clock = base.settings, base.clock
    links, notify = ControlLinks(), notifier(base.database)
    tail, telemetry = EventLogTail(base.database, clock, limits.tail(settings)), OtelTelemetry(metrics)

    # Signals need the dispatcher, whose handlers need the unit of work, which needs signals: looked up when one comes.
    def deliver(committed: Sequence[Signal]) -> None:
        dispatcher.deliver(committed)

    multi = settings.cluster.mode == "multi"
    signals = notify_signals(base, notify) if multi else LocalSignals(deliver)
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
    return Core(
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
        Feeds(uow, clock, presence.all, limits.feeds(settings)),
        dispatcher,
        handlers,
        notify,
    )


async def hear(base: Foundation, core: Core, parts: Lifecycle) -> EphemeralListener | None:
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
    core.tail.subscribe(core.feeds)
    parts.own("event_tail", core.tail.run())
    await core.tail.settled()
    return listener
