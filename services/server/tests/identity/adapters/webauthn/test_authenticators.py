"""The rules of WebAuthn: what a good authenticator in a good browser says passes, and nothing else does, whatever it is."""

import dataclasses

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_kit.authenticator import Authenticator, Bent
from bothy_server.identity.adapters.webauthn.authenticators import WebAuthn
from bothy_server.identity.app.passkey_proof import Answered, Assertion, Attestation, Registered

ORIGIN, SECOND = "https://relay.example.com", "http://localhost:8080"
CHALLENGE, PERSON = bytes(range(32)), bytes(16)
WEBAUTHN = WebAuthn([ORIGIN, SECOND])
OTHER_PAGES = [
    "https://other.example.com",
    "http://relay.example.com",
    "https://relay.example.com:8443",
    "https://evil.relay.example.com",
    "null",
    "",
]
BENT = {
    "another relying party": Bent(rp_id="other.example.com"),
    "a relying party above it": Bent(rp_id="example.com"),
    "inside a foreign page": Bent(cross_origin=True),
    "nobody there": Bent(present=False),
    "nobody verified": Bent(verified=False),
    "another ceremony": Bent(kind="payment.get"),
}


def attestation(given):
    return Attestation(*dataclasses.astuple(given))


def assertion(given):
    return Assertion(*dataclasses.astuple(given))


def registered(authenticator=None, *, origin=ORIGIN, algorithm="ES256", bent=Bent()):  # noqa: B008 - frozen
    made = (authenticator or Authenticator()).create(origin, CHALLENGE, PERSON, algorithm=algorithm, bent=bent)
    return WEBAUTHN.registered(attestation(made))


@pytest.fixture(params=["ES256", "EdDSA"])
def passkey(request):
    """An authenticator with one passkey, and the public key of that."""
    authenticator = Authenticator()
    return authenticator, registered(authenticator, algorithm=request.param).public_key


HOLDER = Authenticator()
NEW = attestation(HOLDER.create(ORIGIN, CHALLENGE, PERSON))
PUBLIC_KEY = WEBAUTHN.registered(NEW).public_key
ANSWER = assertion(HOLDER.get(ORIGIN, CHALLENGE))


# ---- a new passkey --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
@pytest.mark.parametrize("origin", [ORIGIN, SECOND])
@pytest.mark.parametrize("backed_up", [True, False])
def test_a_good_passkey_is_taken(algorithm, origin, backed_up):
    new = registered(Authenticator(backed_up=backed_up), origin=origin, algorithm=algorithm)
    assert new == Registered(CHALLENGE, new.public_key, 0, backed_up)


@pytest.mark.parametrize("origin", OTHER_PAGES)
def test_a_passkey_of_another_page_is_refused(origin):
    assert registered(origin=origin, bent=Bent(rp_id="relay.example.com")) is None


@pytest.mark.parametrize("bent", BENT.values(), ids=BENT)
def test_a_passkey_that_breaks_a_rule_is_refused(bent):
    assert registered(bent=bent) is None


@pytest.mark.parametrize("alg", [-35, -36, -47, -65535, 0, 1])
def test_a_passkey_of_an_algorithm_that_was_not_asked_for_is_refused(alg):
    assert registered(bent=Bent(alg=alg or 2**40)) is None


def test_a_passkey_under_another_id_is_refused():
    assert WEBAUTHN.registered(dataclasses.replace(NEW, credential_id=b"another")) is None


@pytest.mark.parametrize("fmt", ["fido-u2f", "tpm", "android-key", "android-safetynet", "apple", "new", "", 1, None])
def test_what_speaks_of_a_maker_is_not_read(fmt):
    spoilt = cbor2.dumps(cbor2.loads(NEW.attestation_object) | {"fmt": fmt})
    assert WEBAUTHN.registered(dataclasses.replace(NEW, attestation_object=spoilt)) is None


def test_a_key_that_would_be_slow_to_check_with_is_refused():
    told = cbor2.loads(NEW.attestation_object)
    key = cbor2.dumps({1: 3, 3: -257, -1: b"\xff" * 1100, -2: b"\x01\x00\x01"}, canonical=True)
    data = told["authData"][: 37 + 16 + 2 + 32] + key
    slow = cbor2.dumps(told | {"authData": data})
    assert WEBAUTHN.registered(dataclasses.replace(NEW, attestation_object=slow)) is None


@given(st.data())
def test_a_new_passkey_cut_short_or_changed_raises_nothing(data):
    field = data.draw(st.sampled_from(["client_data", "attestation_object"]))
    spoilt = dataclasses.replace(NEW, **{field: _spoilt(data, getattr(NEW, field))})
    # Nobody vouches for a new passkey: what still keeps the rules is one.
    assert isinstance(WEBAUTHN.registered(spoilt), Registered | None)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_random_bytes_are_no_new_passkey(client_data, attestation_object):
    assert WEBAUTHN.registered(dataclasses.replace(NEW, client_data=client_data)) is None
    assert WEBAUTHN.registered(dataclasses.replace(NEW, attestation_object=attestation_object)) is None


CBOR = st.recursive(
    st.none() | st.booleans() | st.integers(-300, 300) | st.binary(max_size=80) | st.text(max_size=8),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.integers(-4, 4) | st.text(max_size=8), each, max_size=4)
    ),
    max_leaves=8,
)


@given(CBOR, CBOR, CBOR)
def test_random_cbor_is_no_new_passkey(key, fmt, statement):
    told = cbor2.loads(NEW.attestation_object)
    other_key = told["authData"][: 37 + 16 + 2 + 32] + cbor2.dumps(key)
    for spoilt in (
        told | {"authData": other_key},
        told | {"fmt": fmt},
        {"authData": told["authData"], "x": statement},
        key,
    ):
        assert WEBAUTHN.registered(dataclasses.replace(NEW, attestation_object=cbor2.dumps(spoilt))) is None


# ---- an answer ------------------------------------------------------------------------------------------------------


def test_a_good_answer_is_taken(passkey):
    authenticator, public_key = passkey
    for count in (1, 2):
        answer = assertion(authenticator.get(ORIGIN, CHALLENGE))
        assert WEBAUTHN.answered(answer, public_key) == Answered(CHALLENGE, count, False)


def test_a_passkey_that_is_known_nowhere_proves_nothing(passkey):
    answer = assertion(passkey[0].get(ORIGIN, CHALLENGE))
    assert WEBAUTHN.answered(answer, None) is None


def test_an_answer_with_another_key_is_refused(passkey):
    authenticator, _ = passkey
    answer = assertion(authenticator.get(ORIGIN, CHALLENGE))
    for algorithm in ("ES256", "EdDSA"):
        assert WEBAUTHN.answered(answer, registered(algorithm=algorithm).public_key) is None


@pytest.mark.parametrize("origin", OTHER_PAGES)
def test_an_answer_at_another_page_is_refused(passkey, origin):
    authenticator, public_key = passkey
    bent = Bent(rp_id="relay.example.com")
    assert WEBAUTHN.answered(assertion(authenticator.get(origin, CHALLENGE, bent=bent)), public_key) is None


@pytest.mark.parametrize("bent", BENT.values(), ids=BENT)
def test_an_answer_that_breaks_a_rule_is_refused(passkey, bent):
    authenticator, public_key = passkey
    assert WEBAUTHN.answered(assertion(authenticator.get(ORIGIN, CHALLENGE, bent=bent)), public_key) is None


def test_an_answer_of_one_page_is_none_at_another_of_the_same_server(passkey):
    authenticator, public_key = passkey
    bent = Bent(rp_id="relay.example.com")
    assert WEBAUTHN.answered(assertion(authenticator.get(SECOND, CHALLENGE, bent=bent)), public_key) is None


@given(st.data())
def test_an_answer_cut_short_or_changed_is_refused(data):
    field = data.draw(st.sampled_from(["client_data", "authenticator_data", "signature"]))
    spoilt = dataclasses.replace(ANSWER, **{field: _spoilt(data, getattr(ANSWER, field))})
    assert WEBAUTHN.answered(spoilt, PUBLIC_KEY) is None


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=200))
def test_random_bytes_answer_nothing(client_data, authenticator_data, signature, public_key):
    assert WEBAUTHN.answered(ANSWER, public_key) is None
    for name, value in {
        "client_data": client_data,
        "authenticator_data": authenticator_data,
        "signature": signature,
    }.items():
        assert WEBAUTHN.answered(dataclasses.replace(ANSWER, **{name: value}), PUBLIC_KEY) is None


def _spoilt(data, good):
    """Cut short, or with one bit turned round."""
    at = data.draw(st.integers(0, len(good) - 1))
    if data.draw(st.booleans()):
        return good[:at]
    return good[:at] + bytes([good[at] ^ 1 << data.draw(st.integers(0, 7))]) + good[at + 1 :]
