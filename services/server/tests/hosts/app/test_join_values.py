"""A join value is the server's own, for one host and one pairing."""

from uuid import UUID

import pytest

from bothy_server.hosts.app.join_values import offer, read
from bothy_server.identity.adapters.keystore.store import add_key, load_keys, retire_key
from bothy_server.identity.adapters.keystore.tokens import KeyStoreTokens, TokenLimits

HOST, OTHER = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize("counter", [1, 2, 2**40])
def test_a_value_is_read_as_it_was_offered(tokens, counter):
    value = offer(tokens, HOST, 3, counter)
    assert read(tokens, HOST, 3, value) == counter
    assert len(value) <= 256, "what a frame carries"


def test_a_value_of_another_host_or_pairing_is_none(tokens):
    value = offer(tokens, HOST, 3, 7)
    assert read(tokens, OTHER, 3, value) is None
    assert read(tokens, HOST, 4, value) is None


def test_nobody_but_the_server_raises_a_counter(tokens):
    _, kid, signature = offer(tokens, HOST, 3, 7).split(".")
    assert read(tokens, HOST, 3, f"7.{kid}.{signature}") == 7
    for forged in (f"8.{kid}.{signature}", f"7.other.{signature}", f"7.{kid}.{'A' * 86}", f"7.{kid}.", f"7.{kid}.A"):
        assert read(tokens, HOST, 3, forged) is None


@pytest.mark.parametrize("value", ["", "7", "7.x", "x.y.z", "7.x.y.z", "..", "7..", "7.x.\N{BULLET}", "-.x.AAAA"])
def test_nonsense_is_none(tokens, value):
    assert read(tokens, HOST, 3, value) is None


def test_a_value_outlives_the_key_that_signed_it(tmp_path, clock):
    """A host may be switched off for longer than a signing key lives."""
    made = add_key(tmp_path, clock.now(), clock.now())
    tokens = KeyStoreTokens(tmp_path, clock, TokenLimits(600, 60, 5, 3600))
    value = offer(tokens, HOST, 3, 7)
    add_key(tmp_path, clock.now(), clock.now())
    retire_key(tmp_path, made, clock.now())
    tokens.keys.take(load_keys(tmp_path))
    assert made.kid not in {key["kid"] for key in tokens.jwks()["keys"]}
    assert read(tokens, HOST, 3, value) == 7
