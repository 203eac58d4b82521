"""Who may do what about a host: open a terminal on it, manage it, let somebody in (``docs/security.md``, Rights)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from bothy_wire.ids import PersonId


@dataclass(frozen=True, slots=True)
class Right:
    """A person's right ``terminal`` on one host. An owner may use every session user that the host's profiles allow."""

    owner: bool
    session_users: frozenset[str] = frozenset()

    def allows(self, session_user: str) -> bool:
        """Whether the right covers this session user."""
        return self.owner or session_user in self.session_users


class Standing(Enum):
    """What a caller is to a host, where it is managed."""

    OWNER = "owner"
    """May do everything, and alone lets somebody in: confirms a machine, adds an owner, gives a grant."""
    OPERATOR = "operator"
    """May name, disable, enable, retire and pair it anew, and take rights away; gives none, and so gains none."""
    NONE = "none"
    """Has nothing to do with its management, as also who may only open terminals on it."""


def standing(right: Right | None, *, is_operator: bool) -> Standing:
    """``right`` is the caller's, at this moment."""
    if right is not None and right.owner:
        return Standing.OWNER
    return Standing.OPERATOR if is_operator else Standing.NONE


@dataclass(frozen=True, slots=True)
class Owner:
    """A person who owns a host. ``usable``: they are not disabled."""

    person_id: PersonId
    person_name: str
    since: datetime
    usable: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """A person's right ``terminal`` as one session user, until ``expires_at`` where that is set."""

    person_id: PersonId
    person_name: str
    session_user: str
    since: datetime
    expires_at: datetime | None


def may_leave(owners: Collection[Owner], leaving: PersonId) -> bool:
    """Whether somebody who can decide about the host is left when this owner goes."""
    return any(each.usable and each.person_id != leaving for each in owners)
