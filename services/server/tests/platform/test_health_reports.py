"""What `/readyz` tells beside its status."""

from bothy_server.platform.clock import ClusterClock
from bothy_server.platform.health import Health


def test_what_others_report_is_told_and_changes_no_status(database):
    health = Health(database, ClusterClock(), 2)
    said = ["ok"]
    health.report("keys", lambda: said[-1])
    assert health.checks() == {"node": "ok", "database": "ok", "clock": "ok", "keys": "ok"}
    said.append("another node signs with k2")
    assert (health.checks()["keys"], health.ready) == ("another node signs with k2", True)
