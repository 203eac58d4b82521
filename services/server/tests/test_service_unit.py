"""The unit of systemd that an operator installs."""

from configparser import ConfigParser
from pathlib import Path

import pytest

from bothy_server.platform.settings import Server

UNIT = Path(__file__).parents[3] / "docs" / "operations" / "bothy-server@.service"


@pytest.fixture
def service():
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read_string(UNIT.read_text())
    return unit["Service"]


def test_systemd_has_more_patience_than_a_node_that_leaves(service):
    server = Server()
    assert int(service["TimeoutStopSec"]) > server.drain_timeout + server.stop_linger
    assert "KillSignal" not in service, "SIGTERM"


def test_a_node_that_drained_stays_down_and_one_that_failed_comes_back(service):
    assert service["Restart"] == "on-failure"
