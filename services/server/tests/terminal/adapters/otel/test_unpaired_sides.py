"""What is counted of lone sides, and with which words."""

import pytest

from bothy_server.platform.telemetry import Metrics
from bothy_server.terminal.adapters.otel.telemetry import OtelTelemetry


@pytest.fixture
def metrics():
    metrics = Metrics()
    yield metrics
    metrics.close()


def test_relay_unpaired_attribute_set(metrics, caplog):
    telemetry = OtelTelemetry(metrics)
    telemetry.unpaired("client")
    telemetry.unpaired("client")
    telemetry.unpaired("host")
    shown = [line for line in metrics.render().decode().splitlines() if not line.startswith("#")]
    assert shown == [
        'bothy_terminal_relay_unpaired_total{bothy_terminal_side="client"} 2.0',
        'bothy_terminal_relay_unpaired_total{bothy_terminal_side="host"} 1.0',
    ]
    assert (telemetry.unpaired_so_far("client"), telemetry.unpaired_so_far("host")) == (2, 1)
    for record in caplog.records:
        assert record.message == "terminal relay side unpaired"
        assert getattr(record, "bothy.close.code") == 4102
    assert [getattr(each, "bothy.terminal.side") for each in caplog.records] == ["client", "client", "host"]
