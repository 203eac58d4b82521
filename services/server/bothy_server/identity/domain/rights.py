"""Who may open a terminal on a host, and as whom (``docs/security.md``, Rights)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Right:
    """A person's right ``terminal`` on one host. An owner may use every session user that the host's profiles allow."""

    owner: bool
    session_users: frozenset[str] = frozenset()

    def allows(self, session_user: str) -> bool:
        """Whether the right covers this session user."""
        return self.owner or session_user in self.session_users
