"""What a node counts."""

from __future__ import annotations

from bothy_server.cluster.adapters.postgres.listener import EphemeralListener
from bothy_server.cluster.domain import node as cluster_node
from bothy_server.hosts.adapters.sockets.control import ControlSockets
from bothy_server.terminal.adapters.sockets.side import SideSockets
from bothy_server.wiring.core import Core
from bothy_server.wiring.process import Foundation


def own(
    base: Foundation,
    core: Core,
    control_sockets: ControlSockets,
    side_sockets: SideSockets,
    ear: EphemeralListener | None,
) -> cluster_node.Figures:
    """For its row in the table of nodes."""
    current_at = core.tail.last_current_at
    return cluster_node.Figures(
        sides=core.switchboard.sides,
        pairs=core.switchboard.pairs,
        controls=control_sockets.connections,
        pending=core.switchboard.pending,
        unpaired_client=core.telemetry.unpaired_so_far("client"),
        unpaired_host=core.telemetry.unpaired_so_far("host"),
        echo_age_s=None if ear is None else ear.echo_age_s,
        tail_lag_s=None if current_at is None else base.clock.monotonic() - current_at,
        forwarded_bytes=side_sockets.heartbeat.forwarded_bytes,
        key_ids=core.tokens.keys.ids,
        signs_with=core.tokens.keys.signs.kid,
    )


def show(core: Core, control_sockets: ControlSockets, side_sockets: SideSockets) -> None:
    """For its metrics."""
    gauge, switchboard, heartbeat = core.metrics.gauge, core.switchboard, side_sockets.heartbeat
    gauge("bothy.terminal.relay.sides", "Sides on this node", lambda: switchboard.sides)
    gauge("bothy.terminal.relay.pairs", "Pairs on this node", lambda: switchboard.pairs)
    gauge("bothy.terminal.relay.forwarded", "Payload forwarded", lambda: heartbeat.forwarded_bytes, "By")
    gauge("bothy.hosts.control.connections", "Control connections", lambda: control_sockets.connections)
    gauge("bothy.hosts.connected", "Hosts that are connected to any node", lambda: core.presence.connected_hosts)
    gauge("bothy.events.feeds", "Readers of events on this node", lambda: core.feeds.count)
    gauge("bothy.events.slow", "Readers of events that did not keep up", lambda: core.feeds.slow)
    gauge("bothy.cluster.signals.malformed", "Signals dropped as malformed", lambda: core.dispatcher.malformed)
