"""How often one client may call on this node (``docs/spec/protocol.md``, Limits).

What needs no signed-in person is counted by the client's network before the body is read, so that a stranger costs next to
nothing. Nobody is identified by it: an office behind one address is one client, and so is the /64 that an IPv6 subscriber
gets. All else is counted by the device that is signed in: each call may write an audit entry, which stays for ever and is written one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from bothy_server.kernel.problems import too_often
from bothy_server.kernel.rates import Rate, RateTable

_PREFIX_BITS = 64
"""A subscriber chooses addresses within a /64 at will; whoever was given more may come from more networks."""


class ClientRates:
    """Counts calls by client."""

    def __init__(self, rate: Rate, most: int, monotonic: Callable[[], float]) -> None:
        """``most`` clients are remembered."""
        self._table = RateTable(rate, most)
        self._monotonic = monotonic
        self.refused = 0
        """Calls that were refused; only grows."""

    def spend(self, client: str) -> None:
        """One call of a client: its network, see :func:`client_network`, or its device. Raises 429 ``rate_limited``."""
        wait_s = self._table.take(client, self._monotonic())
        if wait_s:
            self.refused += 1
            raise too_often(wait_s)


def client_network(address: str) -> str:
    """What a client's address counts as: an IPv4 address, also one mapped into IPv6, or the /64 of an IPv6 one."""
    match ip_address(address):
        case IPv6Address(ipv4_mapped=None, packed=packed):
            return str(IPv6Network((packed, _PREFIX_BITS), strict=False))
        case IPv6Address(ipv4_mapped=plain) | (IPv4Address() as plain):
            return str(plain)
