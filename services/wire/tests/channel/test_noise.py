"""The handshake against published vectors, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.channel.noise import MESSAGE_BYTES, CipherState, Initiator, Responder
from bothy_wire.errors import ChannelError, LocalError

VECTORS = json.loads((Path(__file__).parents[4] / "docs/spec/vectors/noise_ik.json").read_text())
LOW_ORDER_POINTS = [
    bytes(32),
    b"\x01" + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    bytes.fromhex("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
]
DEVICE, HOST = X25519PrivateKey.generate(), X25519PrivateKey.generate()
HOST_PUBLIC = HOST.public_key().public_bytes_raw()


def private(text: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(text))


@pytest.mark.parametrize("vector", VECTORS["published"]["vectors"])
def test_published_vector(vector):
    responder_static = private(vector["responder_static"])
    prologue = bytes.fromhex(vector["prologue"])
    initiator = Initiator(
        private(vector["initiator_static"]),
        responder_static.public_key().public_bytes_raw(),
        prologue,
        ephemeral=private(vector["initiator_ephemeral"]),
    )
    responder = Responder(responder_static, prologue, ephemeral=private(vector["responder_ephemeral"]))
    (payload1, message1), (payload2, message2), *transport = (
        (bytes.fromhex(each["payload"]), bytes.fromhex(each["ciphertext"])) for each in vector["messages"]
    )
    assert initiator.write(payload1) == message1
    assert responder.read(message1) == payload1
    assert responder.remote_static == private(vector["initiator_static"]).public_key().public_bytes_raw()
    assert responder.write(payload2) == message2
    assert initiator.read(message2) == payload2
    initiator_send, initiator_receive = initiator.split()
    responder_send, responder_receive = responder.split()
    assert len(transport) >= 2
    for index, (payload, ciphertext) in enumerate(transport):
        send, receive = (responder_send, initiator_receive) if index % 2 else (initiator_send, responder_receive)
        assert send.encrypt(payload) == ciphertext
        assert receive.decrypt(ciphertext) == payload


def test_there_are_vectors_with_and_without_prologue_and_payload():
    kinds = {(bool(v["prologue"]), bool(v["messages"][0]["payload"])) for v in VECTORS["published"]["vectors"]}
    assert len(kinds) == 4


def handshake() -> tuple[Initiator, Responder]:
    return Initiator(DEVICE, HOST_PUBLIC, b"prologue"), Responder(HOST, b"prologue")


@given(st.data())
def test_a_changed_message_does_not_open_and_changes_nothing(data):
    initiator, responder = handshake()
    message1 = initiator.write(b"hello")
    with pytest.raises(ChannelError):
        responder.read(_changed(data, message1))
    assert responder.read(message1) == b"hello"
    message2 = responder.write(b"welcome")
    with pytest.raises(ChannelError):
        initiator.read(_changed(data, message2))
    assert initiator.read(message2) == b"welcome"


def _changed(data, message: bytes) -> bytes:
    """Another message than this: a bit flipped, cut, or with something behind."""
    # X25519 ignores the top bit of a point, but the transcript does not.
    index = data.draw(st.integers(0, len(message) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "extend"])):
        case "flip":
            return (
                message[:index] + bytes([message[index] ^ (1 << data.draw(st.integers(0, 7)))]) + message[index + 1 :]
            )
        case "cut":
            return message[:index]
        case _:
            return message + data.draw(st.binary(min_size=1, max_size=40))


def test_other_prologue_or_other_host_key_does_not_open():
    message1 = Initiator(DEVICE, HOST_PUBLIC, b"prologue").write(b"")
    with pytest.raises(ChannelError):
        Responder(HOST, b"another").read(message1)
    with pytest.raises(ChannelError):
        Responder(X25519PrivateKey.generate(), b"prologue").read(message1)


def test_too_long_a_message_is_refused():
    initiator, responder = handshake()
    message1 = initiator.write(bytes(MESSAGE_BYTES))
    with pytest.raises(ChannelError, match="length"):
        responder.read(message1)


@pytest.mark.parametrize("point", LOW_ORDER_POINTS)
def test_an_all_zero_secret_is_refused(point):
    with pytest.raises(ChannelError, match="key"):
        Initiator(DEVICE, point, b"").write(b"")
    initiator, responder = handshake()
    with pytest.raises(ChannelError, match="key"):
        responder.read(point + bytes(64))
    responder.read(initiator.write(b""))
    with pytest.raises(ChannelError, match="key"):
        initiator.read(point + responder.write(b"")[32:])


def test_a_static_key_of_low_order_is_refused():
    class LowOrder:
        """A device whose static key is a point of low order, encrypted as it should be."""

        def public_key(self):
            return self

        def public_bytes_raw(self):
            return LOW_ORDER_POINTS[2]

        def exchange(self, _public):
            return bytes(32)

    with pytest.raises(ChannelError, match="key"):
        Responder(HOST, b"").read(Initiator(LowOrder(), HOST_PUBLIC, b"").write(b""))


def test_calls_out_of_turn_are_our_own_fault():
    initiator, responder = handshake()
    with pytest.raises(LocalError):
        initiator.read(bytes(48))
    with pytest.raises(LocalError):
        responder.write(b"")
    responder.read(initiator.write(b""))
    with pytest.raises(LocalError):
        initiator.write(b"")
    with pytest.raises(LocalError):
        responder.read(bytes(96))
    with pytest.raises(LocalError):
        initiator.split()
    initiator.read(responder.write(b""))
    initiator.split()
    with pytest.raises(LocalError):
        initiator.split()


def test_a_forgery_uses_up_no_nonce():
    sender, receiver = CipherState(bytes(32)), CipherState(bytes(32))
    message = sender.encrypt(b"one")
    for forged in (b"", message[:-1], message + b"\0", bytes(len(message))):
        with pytest.raises(ChannelError):
            receiver.decrypt(forged)
    assert receiver.decrypt(message) == b"one"
    with pytest.raises(ChannelError):
        receiver.decrypt(message)


def test_a_nonce_is_taken_even_when_the_encryption_fails():
    cipher = CipherState(bytes(32))
    with pytest.raises(TypeError):
        cipher.encrypt("text")
    assert cipher.nonce == 1


def test_the_last_nonce_is_never_used_for_a_message():
    cipher = CipherState(bytes(32))
    cipher.nonce = 2**64 - 2
    message = cipher.encrypt(b"the last one")
    for call in (cipher.encrypt, cipher.decrypt):
        with pytest.raises(ChannelError, match="used up"):
            call(message)


def test_rekey_replaces_the_key_and_the_nonce_goes_on():
    cipher, key = CipherState(bytes(range(32))), bytes(range(32))
    cipher.encrypt(b"")
    cipher.rekey()
    replaced = AESGCM(key).encrypt(bytes(4) + b"\xff" * 8, bytes(32), b"")[:32]
    assert cipher.encrypt(b"after") == AESGCM(replaced).encrypt(bytes(11) + b"\x01", b"after", b"")
