"""The join counter: how a copied host is found although the copies never meet (``docs/spec/cluster.md``, D5).

Each identify presents the counter that the host stored last and is answered with a fresh, higher one. Two copies of one
state folder present the same counter; after one of them went on, the other's is behind.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST = 1


@dataclass(frozen=True, slots=True)
class Joined:
    """The counter is taken over: ``confirmed`` and ``offered`` are the row's new values."""

    confirmed: int
    offered: int


@dataclass(frozen=True, slots=True)
class Behind:
    """The counter was passed already: a copy, or a host restored from a backup."""


def judge(presented: int, confirmed: int, offered: int) -> Joined | Behind:
    """``confirmed`` and ``offered`` are the row's. A value above both is taken over: the database was restored."""
    if presented < confirmed:
        return Behind()
    return Joined(presented, max(presented, offered) + 1)
