from __future__ import annotations

from ipaddress import ip_network

import pytest

from bothy_server.kernel.problems import Problem
from bothy_server.kernel.rates import Rate
from bothy_server.platform.client_address import client_address
from bothy_server.platform.client_rates import ClientRates, client_network

EDGE = "10.0.0.2"
TRUSTED = (ip_network("10.0.0.0/24"),)


class Gate:
    """Two calls in ten seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rates = ClientRates(Rate(2, 10), 1000, lambda: self.now)

    def refused(self, address: str) -> int | None:
        """``Retry-After`` of a call from there, or None when it passed."""
        try:
            self.rates.spend(client_network(address))
        except Problem as problem:
            return problem.retry_after_s
        return None


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_retry_after_is_when_the_next_call_passes(gate: Gate) -> None:
    assert [gate.refused("198.51.100.1") for _ in range(3)] == [None, None, 5]
    with pytest.raises(Problem) as raised:
        gate.rates.spend("198.51.100.1")
    assert (raised.value.status, raised.value.code) == (429, "rate_limited")
    gate.now = 4.5
    assert gate.refused("198.51.100.1") == 1
    gate.now = 5.5
    assert gate.refused("198.51.100.1") is None
    assert gate.rates.refused == 3


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("198.51.100.1", "198.51.100.2", False),
        ("198.51.100.1", "::ffff:198.51.100.1", True),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::1", True),
        ("0.0.0.1", "::1", False),
    ],
)
def test_a_client_is_an_ipv4_address_or_the_64_of_an_ipv6_one(one: str, other: str, same: bool) -> None:
    assert (client_network(one) == client_network(other)) is same


def test_a_forged_chain_gets_no_fresh_allowance_and_spends_nobody_elses(gate: Gate) -> None:
    """What a stranger writes into X-Forwarded-For stands left of the address that the edge adds, or the edge is not there."""
    through_the_edge = [client_address(EDGE, [f"203.0.113.{n}", "198.51.100.1"], TRUSTED) for n in range(3)]
    assert [gate.refused(each) for each in through_the_edge] == [None, None, 5]
    past_the_edge = [client_address("198.51.100.9", [f"203.0.113.{n}"], TRUSTED) for n in range(3)]
    assert [gate.refused(each) for each in past_the_edge] == [None, None, 5]
    assert [gate.refused(f"203.0.113.{n}") for n in range(3)] == [None] * 3
