"""Implements the port ``Telemetry``; counts and logs lone sides."""

from __future__ import annotations

import logging
from typing import Literal

from bothy_server.platform.telemetry import Metrics
from bothy_wire.close_codes import CloseCode

_log = logging.getLogger(__name__)


class OtelTelemetry:
    """``bothy.terminal.relay.unpaired`` has exactly one attribute, ``bothy.terminal.side``."""

    def __init__(self, metrics: Metrics) -> None:
        """Makes the instruments."""
        self._unpaired = metrics.counter(
            "bothy.terminal.relay.unpaired",
            "Sides whose counterpart did not come to this node in time",
            {"bothy.terminal.side": ("client", "host")},
        )

    def unpaired_so_far(self, side: Literal["client", "host"]) -> int:
        """How many since the start."""
        return self._unpaired.cell(side).value

    def unpaired(self, side: Literal["client", "host"]) -> None:
        """See the port."""
        self._unpaired.add(side)
        _log.warning(
            "terminal relay side unpaired",
            extra={"bothy.terminal.side": side, "bothy.close.code": int(CloseCode.HOST_UNAVAILABLE)},
        )
