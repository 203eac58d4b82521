"""Who asks, behind proxies (``docs/spec/protocol.md``, General)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

Network = IPv4Network | IPv6Network


def forwarded_chain(header: Sequence[str]) -> list[str]:
    """The entries of all ``X-Forwarded-For`` lines, the nearest proxy's last."""
    return [entry.strip() for line in header for entry in line.split(",")]


def client_address(peer: str, chain: Sequence[str], trusted: Sequence[Network]) -> str:
    """The first address from the right that is no trusted proxy; ``peer`` is the one that dialled.

    What stands left of it was written by that stranger. An entry that is no address ends the walk: whoever wrote it is
    the client. When all are trusted it is the leftmost.
    """
    client = peer
    for entry in reversed(chain):
        if not is_trusted(client, trusted) or not _is_address(entry):
            break
        client = entry
    return client


def is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    """Whether a proxy of ours has this address."""
    parsed = ip_address(address)
    plain = getattr(parsed, "ipv4_mapped", None) or parsed  # a listener on [::] sees IPv4 callers so
    return any(plain in network for network in trusted)


def _is_address(entry: str) -> bool:
    try:
        ip_address(entry)
    except ValueError:
        return False
    return True
