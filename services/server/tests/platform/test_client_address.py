from __future__ import annotations

from ipaddress import ip_network

import pytest

from bothy_server.platform.client_address import client_address, forwarded_chain

TRUSTED = (ip_network("10.0.0.0/24"), ip_network("fd00::5"))


@pytest.mark.parametrize(
    ("peer", "chain", "client"),
    [
        ("198.51.100.1", [], "198.51.100.1"),
        ("198.51.100.1", ["203.0.113.7"], "198.51.100.1"),
        ("10.0.0.2", ["203.0.113.7", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.2", ["203.0.113.7", "198.51.100.1", "10.0.0.3"], "198.51.100.1"),
        ("10.0.0.2", ["198.51.100.1", "10.0.1.3"], "10.0.1.3"),
        ("fd00::5", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.2", ["10.0.0.4", "10.0.0.3"], "10.0.0.4"),
        ("::ffff:10.0.0.2", ["198.51.100.1", "::ffff:10.0.0.3"], "198.51.100.1"),
        ("::ffff:10.0.1.2", ["198.51.100.1"], "::ffff:10.0.1.2"),
        ("10.0.0.2", ["198.51.100.1", "unknown"], "10.0.0.2"),
        ("10.0.0.2", ["198.51.100.1", ""], "10.0.0.2"),
    ],
)
def test_the_walk_ends_at_the_first_stranger_from_the_right(peer: str, chain: list[str], client: str) -> None:
    assert client_address(peer, chain, TRUSTED) == client


def test_the_entries_of_several_lines_are_one_chain() -> None:
    assert forwarded_chain(["203.0.113.7, 198.51.100.1", "10.0.0.3"]) == ["203.0.113.7", "198.51.100.1", "10.0.0.3"]
    assert forwarded_chain([]) == []
