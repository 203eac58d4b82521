"""Signatures are worth something for one purpose, one audience and one list of fields only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import assume, given
from hypothesis import strategies as st

from bothy_wire.signing import (
    Purpose,
    canonical_origin,
    fingerprint,
    labelled,
    sign,
    signed_bytes,
    thumbprint,
    verify,
    verify_any,
)

SHARED = json.loads((Path(__file__).parents[3] / "docs/spec/vectors/signing.json").read_text())
KEY = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(SHARED["private_key"]))
PUBLIC = bytes.fromhex(SHARED["public_key"])
AUDIENCE = "https://relay.example.com"
FIELDS = st.lists(st.binary(max_size=8), max_size=4)


@pytest.mark.parametrize("vector", SHARED["vectors"], ids=lambda vector: vector["purpose"])
def test_shared_vector(vector):
    fields = [each["text"] if "text" in each else bytes.fromhex(each["hex"]) for each in vector["fields"]]
    covered = (Purpose(vector["purpose"]), vector["audience"], *fields)
    assert signed_bytes(*covered).hex() == vector["signed"]
    assert sign(KEY, *covered).hex() == vector["signature"]
    assert verify(PUBLIC, bytes.fromhex(vector["signature"]), *covered)


def test_there_is_a_vector_of_every_purpose():
    assert {vector["purpose"] for vector in SHARED["vectors"]} == {purpose.value for purpose in Purpose}


def test_names_of_a_key():
    assert fingerprint(PUBLIC) == SHARED["fingerprint"]
    assert thumbprint(PUBLIC) == SHARED["thumbprint"]


@pytest.mark.parametrize("case", SHARED["origins"], ids=lambda case: case["url"])
def test_canonical_origin(case):
    assert canonical_origin(case["url"]) == case["origin"]
    assert canonical_origin(case["origin"]) == case["origin"]


@pytest.mark.parametrize("url", SHARED["refused_origins"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ValueError):
        canonical_origin(url)


def test_purposes_are_separate():
    for signed in Purpose:
        signature = sign(KEY, signed, AUDIENCE, b"field")
        good = [purpose for purpose in Purpose if verify(PUBLIC, signature, purpose, AUDIENCE, b"field")]
        assert good == [signed]


def test_audiences_are_separate():
    signature = sign(KEY, Purpose.DEVICE_LOGIN, AUDIENCE, b"field")
    assert not verify(PUBLIC, signature, Purpose.DEVICE_LOGIN, "https://other.example.com", b"field")
    assert not verify(PUBLIC, signature, Purpose.DEVICE_LOGIN, AUDIENCE + "field")


def test_a_server_may_have_several_audiences():
    covered = (PUBLIC, sign(KEY, Purpose.DEVICE_LOGIN, AUDIENCE, b"field"), Purpose.DEVICE_LOGIN)
    assert verify_any(*covered, ["https://other.example.com", AUDIENCE], b"field")
    assert not verify_any(*covered, ["https://other.example.com"], b"field")
    assert not verify_any(*covered, [], b"field")
    assert not verify_any(*covered, [AUDIENCE], b"fields")


@given(FIELDS, FIELDS)
def test_fields_have_borders(one, other):
    assume(one != other)
    assert signed_bytes(Purpose.HOST_PAIR, AUDIENCE, *one) != signed_bytes(Purpose.HOST_PAIR, AUDIENCE, *other)


@given(st.text("ab", max_size=4), FIELDS, st.text("ab", max_size=4), FIELDS)
def test_labels_have_borders(label, one, other_label, other):
    assume((label, one) != (other_label, other))
    assert labelled(label, *one) != labelled(other_label, *other)


@given(st.data())
def test_a_changed_signature_or_key_is_refused(data):
    signature = bytearray(sign(KEY, Purpose.HOST_PAIR, AUDIENCE, b"field"))
    signature[data.draw(st.integers(0, 63))] ^= 1 << data.draw(st.integers(0, 7))
    assert not verify(PUBLIC, bytes(signature), Purpose.HOST_PAIR, AUDIENCE, b"field")


@given(st.binary(max_size=70), st.binary(max_size=40))
def test_verify_never_raises(signature, key):
    assert not verify(key, signature, Purpose.HOST_PAIR, AUDIENCE)
    assert not verify(PUBLIC, signature, Purpose.HOST_PAIR, AUDIENCE)
