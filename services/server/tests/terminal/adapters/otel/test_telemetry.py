"""What the terminal counts, as an operator's Prometheus sees it."""

import logging

import pytest

from bothy_server.platform.telemetry import Metrics
from bothy_server.terminal.adapters.otel.telemetry import OtelTelemetry


@pytest.fixture
def metrics():
    metrics = Metrics()
    yield metrics
    metrics.close()


def samples(metrics):
    lines = metrics.render().decode().splitlines()
    return sorted(line for line in lines if line.startswith("bothy_terminal_relay_unpaired"))


def test_relay_unpaired_attribute_set(metrics):
    """The only attribute is ``bothy.terminal.side`` with exactly two values, both there from the start."""
    OtelTelemetry(metrics)
    assert samples(metrics) == [
        'bothy_terminal_relay_unpaired_total{bothy_terminal_side="client"} 0.0',
        'bothy_terminal_relay_unpaired_total{bothy_terminal_side="host"} 0.0',
    ]


def test_each_lone_side_is_counted_and_logged_without_an_id(metrics, caplog):
    telemetry = OtelTelemetry(metrics)
    for side in ("client", "host", "client"):
        telemetry.unpaired(side)
    assert [line.rpartition(" ")[2] for line in samples(metrics)] == ["2.0", "1.0"]
    assert (telemetry.unpaired_so_far("client"), telemetry.unpaired_so_far("host")) == (2, 1)
    assert [getattr(each, "bothy.terminal.side") for each in caplog.records] == ["client", "host", "client"]
    record = caplog.records[0]
    assert (record.levelno, record.message) == (logging.WARNING, "terminal relay side unpaired")
    assert getattr(record, "bothy.close.code") == 4102


def test_another_side_is_a_defect(metrics):
    with pytest.raises(KeyError):
        OtelTelemetry(metrics).unpaired("edge")
