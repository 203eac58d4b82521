"""One node: a committed signal goes straight to the handlers, and nobody else wants to hear."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bothy_server.kernel.unit import Signal


class LocalSignals:
    """``cluster.mode`` = ``single``. ``deliver`` is the dispatcher's; it must not block."""

    def __init__(self, deliver: Callable[[Sequence[Signal]], None]) -> None:
        self._deliver = deliver

    def payloads(self, signals: Sequence[Signal]) -> list[str]:  # noqa: ARG002 - the port's form
        """Nothing: no NOTIFY on ``ephemeral`` in this mode."""
        return []

    def committed(self, signals: Sequence[Signal]) -> None:
        """Hand them to the handlers."""
        self._deliver(signals)

    def send(self, signal: Signal) -> None:
        """Nothing: what is sent outside a unit is for other nodes."""
