from bothy_server.cluster.adapters.local import LocalSignals
from bothy_server.hosts.domain.signals import HostClose


def test_local_signals(sample):
    delivered = []
    signals = LocalSignals(delivered.append)
    assert signals.payloads([sample(HostClose)]) == []
    signals.send(sample(HostClose))
    assert delivered == []
    signals.committed([sample(HostClose)])
    assert delivered == [[sample(HostClose)]]
