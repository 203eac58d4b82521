"""Signals from both ends: how a feature hands them over, and how it gets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bothy_server.kernel.unit import Signal, SignalTransport


class Signals(SignalTransport, Protocol):
    """The way out: for a unit of work as the kernel says, and outside any unit.

    A signal is a hint: it may be lost, doubled or late, and then the rows still are the truth.
    """

    def send(self, signal: Signal) -> None:
        """Hand over for sending; never waits and never raises."""


class SignalHandler(Protocol):
    """What a feature does about signals. Calls never overlap; the next batch gathers while one is handled.

    A handler is idempotent and reads from the database whatever it needs (``docs/spec/cluster.md``, S5). Raising means
    that something was missed: it is logged, and ``on_gap`` follows.
    """

    async def handle(self, signals: Sequence[Signal]) -> None:
        """Act on these, in this order; one read may serve the whole batch."""

    async def on_gap(self) -> None:
        """Signals may have been missed: read the rows of everything registered here and act on them."""
