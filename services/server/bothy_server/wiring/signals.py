"""Which signals there are, and how a process sends them."""

from __future__ import annotations

from bothy_server.cluster.adapters.local import LocalSignals
from bothy_server.cluster.adapters.postgres.signals import Notify, NotifySignals
from bothy_server.cluster.domain.signal import SignalTable
from bothy_server.hosts.domain.signals import HostClose, HostGone, HostPresent
from bothy_server.terminal.domain.signals import SessionOpen, SessionPaired, SessionRedial
from bothy_server.wiring.process import Foundation

TERMINAL_SIGNALS = (SessionOpen, SessionPaired, SessionRedial)
HOST_SIGNALS = (HostClose, HostPresent, HostGone)
SIGNALS = SignalTable((*TERMINAL_SIGNALS, *HOST_SIGNALS))


def outbound(base: Foundation, notify: Notify) -> LocalSignals | NotifySignals:
    """The transport of a process that hears nothing: a worker, the command line."""
    if base.settings.cluster.mode == "single":
        return LocalSignals(lambda _: None)
    return notify_signals(base, notify)


def notify_signals(base: Foundation, notify: Notify) -> NotifySignals:
    """The transport among several nodes."""
    return NotifySignals(SIGNALS, notify, max_waiting=base.settings.cluster.max_waiting_signals)
