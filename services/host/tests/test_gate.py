"""Every reason for which a device may not enter."""

from __future__ import annotations

import time
import uuid

import pytest

from bothy_host.gate import HandshakeRefused, Order, admit, size_allowed
from bothy_wire.channel import Message1
from bothy_wire.signing import fingerprint

KEY = bytes(range(32))


@pytest.fixture
def order() -> Order:
    return Order(uuid.uuid4(), "/path", "shell", "alex")


def message1(token: str, **changed: object) -> Message1:
    fields = {
        "token": token,
        "profile": "shell",
        "session_user": "alex",
        "columns": 80,
        "rows": 24,
        "term": "xterm",
        "lineage": None,
        "output_processed": 0,
        "input_sent": 0,
    }
    return Message1(**fields | changed)


@pytest.fixture
def ask(prepared, server, order):
    """A device with a good token, but for what the test changes."""
    prepared.host.tokens.take_keys(server.jwks())

    async def ask(token: dict | None = None, **changed: object):
        claims = {"session_user": "alex"} | (token or {})
        made = server.token(order.session_id, KEY, **claims)
        return await admit(prepared.host, order, message1(made, **changed), KEY)

    return ask


async def test_a_good_device_enters(ask):
    assert await ask() is None


@pytest.mark.parametrize(
    ("token", "changed", "code"),
    [
        ({"exp": int(time.time()) - 10}, {}, "token_expired"),
        ({"sub": str(uuid.uuid4())}, {}, "token_invalid"),
        ({"profile": "admin"}, {}, "profile_mismatch"),
        ({"session_user": "sam"}, {}, "profile_mismatch"),
        ({}, {"profile": "admin"}, "profile_mismatch"),
        ({}, {"session_user": "sam"}, "profile_mismatch"),
        ({}, {"columns": 0}, "size_invalid"),
        ({}, {"rows": 1001}, "size_invalid"),
    ],
)
async def test_refused(ask, token, changed, code):
    with pytest.raises(HandshakeRefused) as refused:
        await ask(token, **changed)
    assert refused.value.code == code


async def test_the_file_of_devices_has_the_last_word(ask, prepared, tmp_path):
    from msgspec.structs import replace

    listed = tmp_path / "authorized_devices"
    prepared.host.settings = replace(prepared.host.settings, authorized_devices=str(listed))
    for text, reason in (
        (None, "cannot be read"),
        ("", "has no line"),
        (f"{fingerprint(KEY)} laptop users=sam\n", "has no line of .* for shell as alex"),
        (f"{fingerprint(KEY)} laptop profiles=admin\n", "has no line"),
        ("garbage\n", "line 1"),
        (f"{fingerprint(KEY)} laptop", "has no end"),
    ):
        if text is not None:
            listed.touch(mode=0o600)
            listed.write_text(text)
        with pytest.raises(HandshakeRefused, match=reason) as refused:
            await ask()
        assert refused.value.code == "device_not_authorized"
        assert (refused.value.admitted is not None) == (reason.startswith("has no line"))
    listed.write_text(f"{fingerprint(KEY)} laptop users=alex profiles=shell\n")
    admitted = await ask()
    assert admitted.allows(fingerprint(KEY), "shell", "alex")


@pytest.mark.parametrize(("cells", "allowed"), [(0, False), (1, True), (1000, True), (1001, False), (-1, False)])
def test_sizes(cells, allowed):
    assert size_allowed(cells) is allowed
