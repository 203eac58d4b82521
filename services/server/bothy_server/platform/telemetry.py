"""Metrics: plain integers in our code, read by OpenTelemetry only when somebody asks.

An OpenTelemetry ``add`` costs microseconds; ``cell.value += 1`` costs nothing that a relay would notice. Attributes are
closed lists, so that no id can become one, and every combination is there from the start as 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

Attributes = Mapping[str, Sequence[str]]
"""Name of each attribute, with every value that it may have."""


class Metrics:
    """The instruments of one process. Names have dots (``bothy.terminal.relay.unpaired``); Prometheus sees underscores."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        """Shares nothing with other instances, so that a test may run several nodes in one process."""
        self._registry = CollectorRegistry()
        reader = PrometheusMetricReader(disable_target_info=True, scope_info_enabled=False, registry=self._registry)
        self._provider = MeterProvider([reader], shutdown_on_exit=False)
        self._meter = self._provider.get_meter("bothy")

    def counter(self, name: str, meaning: str, attributes: Attributes | None = None, unit: str = "") -> Counter:
        """A number that only grows."""
        counter = Counter(attributes or {})
        self._meter.create_observable_counter(name, [counter.observe], unit, meaning)
        return counter

    def gauge(self, name: str, meaning: str, read: Callable[[], float | None], unit: str = "") -> None:
        """A number that is read when it is asked for; None leaves it out. ``read`` is called from any thread."""

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            value = read()
            return () if value is None else (Observation(value),)

        self._meter.create_observable_gauge(name, [observe], unit, meaning)

    def render(self) -> bytes:
        """Everything in the text format of Prometheus."""
        return generate_latest(self._registry)

    def close(self) -> None:
        """Let go of the instruments."""
        self._provider.shutdown()


class Cell:
    """One combination of attribute values. Add to ``value``."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        """Starts at 0."""
        self.value = 0


class Counter:
    """All cells of one instrument."""

    def __init__(self, attributes: Attributes) -> None:
        """A cell for every combination."""
        self._names = tuple(attributes)
        self._cells = {values: Cell() for values in itertools.product(*attributes.values())}

    def cell(self, *values: str) -> Cell:
        """The cell of these attribute values, in the order of the declaration. Raises ``KeyError`` for any other value."""
        return self._cells[values]

    def add(self, *values: str) -> None:
        """Count one; for code that is not on a hot path."""
        self._cells[values].value += 1

    def observe(self, _: CallbackOptions) -> Iterable[Observation]:
        """What OpenTelemetry reads."""
        return [
            Observation(cell.value, dict(zip(self._names, values, strict=True))) for values, cell in self._cells.items()
        ]
