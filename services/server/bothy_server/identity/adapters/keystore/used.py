"""Which tokens were used already, on this node."""

from __future__ import annotations


class UsedTokens:
    """Ids of used tokens until they expire.

    When it is full of living ones it takes no more, since forgetting one would let it be used again.
    """

    def __init__(self, most: int) -> None:
        """``most``: ids that are held."""
        self._most = most
        self._expiry: dict[str, float] = {}

    def take(self, token_id: str, expires_at: float, now: float) -> bool:
        """Whether the token may be used now; from then on it may not. Both times in seconds of one clock."""
        if token_id in self._expiry:
            return False
        if len(self._expiry) >= self._most:
            self._expiry = {each: expiry for each, expiry in self._expiry.items() if expiry > now}
            if len(self._expiry) >= self._most:
                return False
        self._expiry[token_id] = expires_at
        return True
