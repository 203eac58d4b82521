"""Counters are there from the start, take only what was declared, and cost an addition."""

import pytest

from bothy_server.platform.telemetry import Metrics


@pytest.fixture
def metrics():
    metrics = Metrics()
    yield metrics
    metrics.close()


def lines(metrics: Metrics) -> list[str]:
    return [line for line in metrics.render().decode().splitlines() if not line.startswith("#")]


def test_a_counter_shows_every_combination_from_the_start(metrics):
    unpaired = metrics.counter(
        "bothy.terminal.relay.unpaired", "Sides that stayed alone", {"bothy.terminal.side": ("client", "host")}
    )
    unpaired.add("client")
    unpaired.cell("client").value += 2
    assert lines(metrics) == [
        'bothy_terminal_relay_unpaired_total{bothy_terminal_side="client"} 3.0',
        'bothy_terminal_relay_unpaired_total{bothy_terminal_side="host"} 0.0',
    ]
    assert b"# HELP bothy_terminal_relay_unpaired_total Sides that stayed alone" in metrics.render()


def test_a_value_that_was_not_declared_is_refused(metrics):
    counter = metrics.counter("bothy.test", "Test", {"side": ("client", "host")})
    for values in [("0198-an-id",), (), ("client", "host")]:
        with pytest.raises(KeyError):
            counter.add(*values)


def test_a_counter_without_attributes(metrics):
    metrics.counter("bothy.signals", "Signals").add()
    assert lines(metrics) == ["bothy_signals_total 1.0"]


def test_a_gauge_is_read_when_asked_for_and_may_be_absent(metrics):
    value = None
    metrics.gauge("bothy.echo.age", "Since the last echo", lambda: value, "s")
    assert lines(metrics) == []
    value = 1.5
    assert lines(metrics) == ["bothy_echo_age_seconds 1.5"]


def test_two_nodes_in_one_process_share_nothing(metrics):
    other = Metrics()
    metrics.counter("bothy.signals", "Signals").add()
    other.counter("bothy.signals", "Signals")
    assert lines(other) == ["bothy_signals_total 0.0"]
    other.close()
