"""From the settings to the limits of each part, so that no part knows the settings."""

from __future__ import annotations

from bothy_server.cluster.app.inbox import InboxLimits
from bothy_server.cluster.app.node_registry import RegistryLimits
from bothy_server.cluster.domain import drain as drain_rule
from bothy_server.cluster.domain import listener as listener_rule
from bothy_server.events.app.feeds import FeedLimits
from bothy_server.events.app.replay import ReplayLimits
from bothy_server.hosts.adapters.sockets.limits import ControlLimits
from bothy_server.hosts.app.pairing import PairingLimits
from bothy_server.hosts.domain import duplicates
from bothy_server.hosts.domain.presence import PresenceLimits
from bothy_server.identity.adapters.keystore.tokens import TokenLimits
from bothy_server.identity.app.device_logins import DeviceLoginLimits
from bothy_server.identity.app.login import LoginLimits
from bothy_server.identity.app.passkey_login import PasskeyLoginLimits
from bothy_server.identity.app.passkeys import PasskeyLimits
from bothy_server.identity.app.step_up import StepUpLimits
from bothy_server.platform.event_log import TailLimits
from bothy_server.platform.serving import ListenLimits
from bothy_server.platform.settings import Settings
from bothy_server.terminal.adapters.sockets.forwarder import ForwarderLimits
from bothy_server.terminal.app.open_session import SessionLimits
from bothy_server.terminal.app.sweep import Overdue, SweepLimits
from bothy_server.terminal.app.switchboard import Bounds
from bothy_server.terminal.app.traffic import TrafficLimits
from bothy_server.terminal.domain import rendezvous
from bothy_wire.frames import HostLimits


def inbox(settings: Settings) -> InboxLimits:
    """Of each signal handler's inbox."""
    return InboxLimits(settings.cluster.max_waiting_signals, settings.database.retry_after)


def registry(settings: Settings) -> RegistryLimits:
    """Of the table of nodes."""
    return RegistryLimits(settings.cluster.status_interval, settings.cluster.node_forget_after)


def drain(settings: Settings) -> drain_rule.Limits:
    """Of the drain."""
    server = settings.server
    return drain_rule.Limits(
        server.drain_notice,
        server.drain_spread,
        server.drain_control_wait,
        server.drain_batch,
        server.drain_batch_gap,
        server.drain_timeout,
    )


def listener(settings: Settings) -> listener_rule.Limits:
    """Of the ephemeral listener."""
    database = settings.database
    return listener_rule.Limits(
        database.listen_reconnect_backoff_cap, database.listen_watchdog_interval, database.listen_echo_timeout
    )


def tail(settings: Settings) -> TailLimits:
    """Of the event log's reader."""
    return TailLimits(
        settings.event_log.poll_interval,
        settings.database.listen_reconnect_backoff_cap,
        settings.database.transaction_timeout,
        settings.event_log.batch,
    )


def feeds(settings: Settings) -> FeedLimits:
    """Of what pages are told."""
    events = settings.events
    return FeedLimits(
        per_person=events.max_per_person,
        per_node=events.max_per_node,
        waiting=events.max_waiting,
        comment_interval=events.comment_interval,
        presence_interval=events.presence_interval,
        retry=events.retry,
        replay=ReplayLimits(events.max_replayed, settings.event_log.batch),
    )


def presence(settings: Settings) -> PresenceLimits:
    """Of the presence view."""
    return PresenceLimits(settings.terminal.host_heartbeat_interval, settings.terminal.host_heartbeat_miss_limit)


def meeting(settings: Settings) -> rendezvous.Limits:
    """Of every rendezvous."""
    terminal = settings.terminal
    return rendezvous.Limits(
        terminal.open_timeout, terminal.start_timeout, terminal.redial_after, terminal.stall_timeout
    )


def sessions(settings: Settings) -> SessionLimits:
    """Of what a person may open."""
    terminal = settings.terminal
    return SessionLimits(
        terminal.max_sessions_per_person,
        terminal.max_sessions_per_host,
        terminal.open_rate,
        terminal.max_duration,
        terminal.resume_window,
    )


def control(settings: Settings) -> ControlLimits:
    """Of control connections, and what a host is told."""
    terminal, wire = settings.terminal, settings.wire
    return ControlLimits(
        wire.identify_timeout,
        wire.max_frame_bytes,
        terminal.host_heartbeat_interval,
        terminal.host_heartbeat_miss_limit,
        settings.hosts.max_waiting_frames,
        terminal.close_linger,
        settings.database.retry_after,
        HostLimits(
            idle_timeout_s=terminal.idle_timeout,
            idle_grace_s=terminal.idle_grace,
            detach_grace_s=terminal.detach_grace,
            max_duration_s=terminal.max_duration,
        ),
        duplicates.Limits(
            probe_timeout=terminal.host_duplicate_probe_timeout,
            verdict_retry=settings.database.retry_after,
            probation=settings.cluster.mode == "multi",
        ),
    )


def http(settings: Settings) -> ListenLimits:
    """Of the http listeners."""
    server = settings.server
    return ListenLimits(
        message_bytes=settings.wire.max_unidentified_frame_bytes,
        connections=server.max_connections,
        request_timeout=server.request_timeout,
        linger=settings.terminal.close_linger,
        stop_linger=server.stop_linger,
    )


def forwarder(settings: Settings) -> ForwarderLimits:
    """Of the data plane."""
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


def bounds(settings: Settings) -> Bounds:
    """Of the switchboard."""
    return Bounds(settings.terminal.max_pending_per_node, settings.terminal.max_expectations_per_node)


def sweep(settings: Settings) -> SweepLimits:
    """Of the worker's sweep. An interval is left to nodes and hosts, which end their sessions themselves."""
    terminal, margin = settings.terminal, settings.terminal.sweep_interval
    overdue = Overdue(
        open_timeout=terminal.open_timeout + margin,
        start_timeout=terminal.start_timeout + margin,
        idle=terminal.idle_timeout + terminal.idle_grace + terminal.last_frame_interval,
        detach_grace=terminal.detach_grace + margin,
        host_lost=terminal.detach_grace + settings.hosts.last_seen_interval,
    )
    return SweepLimits(terminal.sweep_interval, presence(settings).window, terminal.sweep_batch, overdue)


def traffic(settings: Settings) -> TrafficLimits:
    """Of the meters of what passes."""
    return TrafficLimits(settings.terminal.last_frame_interval, settings.database.retry_after)


def login(settings: Settings) -> LoginLimits:
    """Of login challenges and the logins of browsers."""
    identity = settings.identity
    return LoginLimits(identity.challenge_ttl, identity.browser_login_ttl)


def passkeys(settings: Settings) -> PasskeyLimits:
    """Of a person's passkeys."""
    identity = settings.identity
    return PasskeyLimits(identity.passkey_challenge_ttl, identity.first_passkey_window, identity.max_passkeys)


def passkey_login(settings: Settings) -> PasskeyLoginLimits:
    """Of logins with them."""
    return PasskeyLoginLimits(settings.identity.passkey_challenge_ttl, settings.identity.browser_login_ttl)


def device_logins(settings: Settings) -> DeviceLoginLimits:
    """Of devices that ask to be let in."""
    identity = settings.identity
    return DeviceLoginLimits(identity.device_login_ttl, identity.device_login_interval, identity.max_device_logins)


def step_up(settings: Settings) -> StepUpLimits:
    """Of confirmations."""
    identity = settings.identity
    return StepUpLimits(identity.challenge_ttl, identity.passkey_challenge_ttl, identity.step_up_window)


def pairing(settings: Settings) -> PairingLimits:
    """Of pairing codes."""
    return PairingLimits(settings.hosts.pairing_code_ttl, settings.hosts.pairing)


def tokens(settings: Settings) -> TokenLimits:
    """Of the tokens that a node mints."""
    identity, session_ttl = settings.identity, settings.terminal.session_token_ttl
    lead = settings.secrets.key_publish_lead
    return TokenLimits(identity.access_token_ttl, session_ttl, identity.clock_leeway, lead)
