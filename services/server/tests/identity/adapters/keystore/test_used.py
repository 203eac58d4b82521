from __future__ import annotations

from bothy_server.identity.adapters.keystore.used import UsedTokens


def test_a_token_is_taken_once() -> None:
    used = UsedTokens(2)
    assert used.take("a", 60, now=0)
    assert not used.take("a", 60, now=59)
    assert used.take("b", 60, now=59)


def test_a_full_memory_forgets_only_what_is_expired() -> None:
    used = UsedTokens(2)
    assert used.take("a", 60, now=0)
    assert used.take("b", 90, now=30)
    assert not used.take("c", 119, now=59)
    assert used.take("c", 120, now=60)
    assert not used.take("b", 90, now=60)
    assert not used.take("d", 120, now=60)
