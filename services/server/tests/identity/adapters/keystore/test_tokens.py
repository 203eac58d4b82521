"""Tokens over the key store: what a token must be to be read, and which keys count when."""

import base64
import json
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, OKPKey

from bothy_server.identity.adapters.keystore.store import add_key, load_keys, retire_key
from bothy_server.identity.adapters.keystore.tokens import KeyStoreTokens, TokenLimits
from bothy_server.identity.adapters.keystore.used import UsedTokens
from bothy_server.identity.app.ports import TokenExpired, TokenInvalid
from bothy_server.identity.domain.tokens import AccessToken, DrainToken, ProbeToken, SessionToken, StreamToken
from bothy_wire.signing import thumbprint

IDS = [UUID(int=(0x0199AAAA << 96) | each) for each in range(1, 5)]
ACCESS = AccessToken(IDS[0], IDS[1])
STREAM = StreamToken(IDS[2], IDS[1], 7)
SESSION = SessionToken(IDS[2], IDS[3], IDS[1], "shell", "alex-shell", "thumbprint-of-the-device")
LIMITS = TokenLimits(access_ttl=600, session_ttl=60, leeway=5, publish_lead=3600)
LEAD = timedelta(hours=1)


@pytest.fixture
def folder(tmp_path, clock):
    add_key(tmp_path / "keys", clock.now(), clock.now())
    return tmp_path / "keys"


@pytest.fixture
def tokens(folder, clock):
    return KeyStoreTokens(folder, clock, LIMITS)


def parts(text):
    """Header and claims."""
    return [json.loads(base64.urlsafe_b64decode(each + "==")) for each in text.split(".")[:2]]


def forge(folder, text, *, header=None, claims=None, key=None, algorithms=("Ed25519",)):
    """The token with these fields changed (None: left out), signed by our own key or ``key``."""
    old_header, old_claims = parts(text)
    new_header = {name: value for name, value in (old_header | (header or {})).items() if value is not None}
    new_claims = {name: value for name, value in (old_claims | (claims or {})).items() if value is not None}
    signing = key or OKPKey.import_key(load_keys(folder)[0].key)
    return jwt.encode(new_header, new_claims, signing, algorithms=list(algorithms))


# ---- what is in them ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("token", "life"), [(ACCESS, 600), (STREAM, 60)])
def test_a_token_is_read_as_it_was_minted(tokens, token, life):
    text, given = tokens.mint(token)
    assert tokens.read(type(token), text) == token
    assert given == life


def test_a_session_token_holds_what_its_host_checks(tokens, folder, clock):
    text, life = tokens.mint(SESSION)
    header, claims = parts(text)
    assert header == {"alg": "Ed25519", "typ": "bothy-session+jwt", "kid": load_keys(folder)[0].kid}
    now = clock.now().timestamp()
    assert claims.pop("jti")
    assert claims == {
        "iss": "bothy",
        "aud": "host",
        "sub": str(SESSION.session_id),
        "host": str(SESSION.host_id),
        "device": str(SESSION.device_id),
        "profile": "shell",
        "session_user": "alex-shell",
        "cnf": {"jkt": "thumbprint-of-the-device"},
        "iat": now,
        "nbf": now,
        "exp": now + life,
    }


def test_two_tokens_never_have_one_id(tokens):
    assert parts(tokens.mint(ACCESS)[0])[1]["jti"] != parts(tokens.mint(ACCESS)[0])[1]["jti"]


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "read_as"), [(ACCESS, StreamToken), (STREAM, AccessToken), (SESSION, AccessToken), (SESSION, StreamToken)]
)
def test_a_token_of_one_kind_is_none_of_another(tokens, token, read_as):
    with pytest.raises(TokenInvalid):
        tokens.read(read_as, tokens.mint(token)[0])


def test_a_session_token_is_for_its_host_alone(tokens):
    with pytest.raises(TokenInvalid, match="for its host"):
        tokens.read(SessionToken, tokens.mint(SESSION)[0])


@pytest.mark.parametrize(
    "changed",
    [
        {"header": {"typ": None}},
        {"header": {"typ": "JWT"}},
        {"header": {"typ": "bothy-access+jwt"}},
        {"header": {"kid": "unknown"}},
        {"claims": {"aud": "api"}},
        {"claims": {"aud": ["relay"]}},
        {"claims": {"aud": None}},
        {"claims": {"iss": "other"}},
        {"claims": {"iss": None}},
        {"claims": {"exp": None}},
        {"claims": {"exp": "soon"}},
        {"claims": {"iat": None}},
        {"claims": {"nbf": None}},
        {"claims": {"jti": None}},
        {"claims": {"jti": ""}},
        {"claims": {"sub": None}},
        {"claims": {"sub": str(STREAM.session_id).upper()}},
        {"claims": {"sub": 7}},
        {"claims": {"device": "nobody"}},
        {"claims": {"attach_seq": None}},
        {"claims": {"attach_seq": "many"}},
        {"key": OKPKey.generate_key("Ed25519")},
    ],
)
def test_a_token_with_anything_wrong_is_invalid(tokens, folder, changed):
    text, _ = tokens.mint(STREAM)
    assert tokens.read(StreamToken, forge(folder, text)) == STREAM
    with pytest.raises(TokenInvalid) as refusal:
        tokens.read(StreamToken, forge(folder, text, **changed))
    assert not isinstance(refusal.value, TokenExpired)


@pytest.mark.parametrize("text", ["", ".", "..", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "\N{BULLET}", "x" * 5000])
def test_nonsense_is_invalid(tokens, text):
    with pytest.raises(TokenInvalid):
        tokens.read(AccessToken, text)


@pytest.mark.parametrize(
    "header",
    [
        None,
        [],
        "x",
        7,
        {},
        {"alg": "none"},
        {"alg": None},
        {"alg": ["Ed25519"]},
        {"alg": "Ed25519"},
        {"alg": "Ed25519", "kid": 7},
        {"alg": "Ed25519", "kid": ["x"]},
        {"alg": "Ed25519", "kid": "x", "crit": "x"},
    ],
)
def test_a_header_that_is_none_is_invalid(tokens, header):
    encoded = base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
    with pytest.raises(TokenInvalid):
        tokens.read(AccessToken, f"{encoded}.e30.AAAA")


def test_no_other_algorithm_counts(tokens, folder):
    text, _ = tokens.mint(ACCESS)
    public = OctKey.import_key(load_keys(folder)[0].public)
    with pytest.raises(TokenInvalid):
        tokens.read(AccessToken, forge(folder, text, header={"alg": "HS256"}, key=public, algorithms=["HS256"]))


def test_a_changed_signature_or_body_is_invalid(tokens):
    text, other = tokens.mint(ACCESS)[0], tokens.mint(replace(ACCESS, device_id=IDS[3]))[0]
    header, body, signature = text.split(".")
    for bad in (
        f"{header}.{other.split('.')[1]}.{signature}",
        f"{header}.{body}.{other.split('.')[2]}",
        f"{header}.{body}.",
        f"{header}.{body}.{signature}.{signature}",
    ):
        with pytest.raises(TokenInvalid):
            tokens.read(AccessToken, bad)


def test_a_token_ends_at_its_instant_without_leeway(tokens, clock):
    text, life = tokens.mint(ACCESS)
    clock.advance(life - 0.001)
    assert tokens.read(AccessToken, text) == ACCESS
    clock.advance(0.001)
    with pytest.raises(TokenExpired):
        tokens.read(AccessToken, text)


@pytest.mark.parametrize("name", ["iat", "nbf"])
def test_a_token_may_begin_a_leeway_ahead(tokens, folder, clock, name):
    """The node that minted it may be a little ahead of this one."""
    text, _ = tokens.mint(ACCESS)
    now = clock.now().timestamp()
    tokens.read(AccessToken, forge(folder, text, claims={name: now + LIMITS.leeway}))
    with pytest.raises(TokenInvalid, match="not valid yet"):
        tokens.read(AccessToken, forge(folder, text, claims={name: now + LIMITS.leeway + 0.01}))


# ---- keys -----------------------------------------------------------------------------------------------------------


def kid_of(text):
    return parts(text)[0]["kid"]


def published(tokens):
    return {each["kid"] for each in tokens.jwks()["keys"]}


def test_the_published_keys_are_public(tokens, folder):
    (key,) = load_keys(folder)
    (published_key,) = tokens.jwks()["keys"]
    assert published_key.items() >= {"kty": "OKP", "crv": "Ed25519", "alg": "Ed25519", "use": "sig"}.items()
    assert published_key["kid"] == key.kid == thumbprint(base64.urlsafe_b64decode(published_key["x"] + "="))
    assert "d" not in published_key


def test_the_next_key_is_published_before_it_signs(tokens, folder, clock):
    (first,) = load_keys(folder)
    following = add_key(folder, clock.now(), clock.now() + LEAD)
    assert tokens.keys.take(load_keys(folder))
    assert published(tokens) == {first.kid, following.kid}
    clock.advance(LEAD.total_seconds() - 1)
    old, _ = tokens.mint(ACCESS)
    assert kid_of(old) == first.kid
    clock.advance(1)
    new, _ = tokens.mint(ACCESS)
    assert kid_of(new) == tokens.sign(b"")[0] == following.kid
    assert tokens.read(AccessToken, old) == tokens.read(AccessToken, new) == ACCESS


def test_a_retiring_key_signs_no_more_and_its_tokens_are_good_to_their_end(tokens, folder, clock):
    (first,) = load_keys(folder)
    text, life = tokens.mint(ACCESS)
    add_key(folder, clock.now(), clock.now())
    retire_key(folder, first, clock.now() + timedelta(seconds=life))
    tokens.keys.take(load_keys(folder))
    assert kid_of(tokens.mint(ACCESS)[0]) != first.kid
    clock.advance(life - 1)
    tokens.keys.take(load_keys(folder))
    assert tokens.read(AccessToken, text) == ACCESS
    clock.advance(1)
    assert tokens.keys.take(load_keys(folder)), "hosts have to be told"
    assert first.kid not in published(tokens)


def test_a_key_that_was_retired_at_once_is_published_no_longer_and_its_tokens_are_over(tokens, folder, clock):
    (first,) = load_keys(folder)
    text, _ = tokens.mint(ACCESS)
    add_key(folder, clock.now(), clock.now())
    retire_key(folder, first, clock.now())
    assert tokens.keys.take(load_keys(folder))
    assert first.kid not in published(tokens)
    assert kid_of(tokens.mint(ACCESS)[0]) != first.kid
    with pytest.raises(TokenInvalid):
        tokens.read(AccessToken, text)


def test_what_a_retired_key_signed_for_a_host_stays_true(tokens, folder, clock):
    (first,) = load_keys(folder)
    kid, signature = tokens.sign(b"signed")
    add_key(folder, clock.now(), clock.now())
    retire_key(folder, first, clock.now())
    tokens.keys.take(load_keys(folder))
    assert tokens.verify(kid, b"signed", signature)
    assert not tokens.verify(kid, b"other", signature)
    assert not tokens.verify(kid, b"signed", b"short")
    assert not tokens.verify("unknown", b"signed", signature)


def test_a_token_for_a_drain_is_for_nothing_else(tokens):
    text, _ = tokens.mint(DrainToken())
    assert tokens.read(DrainToken, text) == DrainToken()
    for kind, other in ((AccessToken, text), (ProbeToken, text), (DrainToken, tokens.mint(ProbeToken(1.0))[0])):
        with pytest.raises(TokenInvalid):
            tokens.read(kind, other)


# ---- once ------------------------------------------------------------------------------------------------------------


def test_a_token_that_counts_once_is_refused_the_second_time(tokens, folder, clock):
    used = UsedTokens(8)
    text, _ = tokens.mint(ProbeToken(1.0))
    assert tokens.read_once(ProbeToken, text, used) == ProbeToken(1.0)
    for spelled in (text, forge(folder, text, claims={"hold_s": 2.0})):
        with pytest.raises(TokenInvalid):
            tokens.read_once(ProbeToken, spelled, used)
    assert tokens.read_once(ProbeToken, tokens.mint(ProbeToken(1.0))[0], used) == ProbeToken(1.0)
