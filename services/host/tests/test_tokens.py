"""Every way in which a session token can be wrong."""

from __future__ import annotations

import asyncio
import secrets
import uuid

import pytest
from joserfc import jws, jwt
from joserfc.jwk import OctKey, OKPKey

from bothy_host import tokens
from bothy_host.tokens import KeysUnavailable, Presented, TokenDesk, TokenRefused
from bothy_wire.signing import thumbprint

NOW = 1_800_000_000.0
HOST, SESSION, DEVICE = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
DEVICE_KEY = secrets.token_bytes(32)
SERVER = OKPKey.generate_key("Ed25519", auto_kid=True)
HEADER = {"alg": "Ed25519", "typ": "bothy-session+jwt", "kid": SERVER.kid}
CLAIMS = {
    "iss": "bothy",
    "aud": "host",
    "sub": str(SESSION),
    "host": str(HOST),
    "device": str(DEVICE),
    "jti": "one",
    "iat": NOW,
    "nbf": NOW,
    "exp": NOW + 60,
    "profile": "shell",
    "session_user": "alex",
    "cnf": {"jkt": thumbprint(DEVICE_KEY)},
}


class Desk:
    """A desk with one published key and a fetch that a test looks at."""

    def __init__(self, *keys: OKPKey, interval: float = 60, retry: float = 60) -> None:
        self.fetches = 0
        self.published: list[OKPKey] | None = list(keys)
        self.answered = asyncio.Event()
        self.answered.set()
        self.desk = TokenDesk(host_id=HOST, leeway=5, fetch_interval=interval, retry_interval=retry, fetch=self.fetch)
        self.desk.take_keys(jwks(*keys))

    async def fetch(self):
        self.fetches += 1
        await self.answered.wait()
        if self.published is None:
            raise KeysUnavailable("away")
        return jwks(*self.published)

    async def spend(self, token, now=NOW):
        return await self.desk.spend(Presented(token, SESSION, DEVICE_KEY, now))


def jwks(*keys):
    return {"keys": [key.as_dict(private=False) for key in keys]}


def token(header=(), key=SERVER, **claims):
    changed = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    return jwt.encode(HEADER | dict(header), changed, key, algorithms=["Ed25519"])


async def test_a_good_token_enters_once():
    desk = Desk(SERVER)
    claims = await desk.spend(token())
    assert (claims.device, claims.profile, claims.session_user) == (DEVICE, "shell", "alex")
    with pytest.raises(TokenRefused) as refused:
        await desk.spend(token())
    assert refused.value.code == "token_replayed"
    assert desk.fetches == 0


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "other"},
        {"aud": "relay"},
        {"sub": str(uuid.uuid4())},
        {"host": str(uuid.uuid4())},
        {"cnf": {"jkt": thumbprint(bytes(32))}},
        {"cnf": {}},
        {"iat": NOW + 6},
        {"nbf": NOW + 6},
        {"sub": "x"},
        *({name: None} for name in CLAIMS),
    ],
)
async def test_any_wrong_or_missing_claim_is_invalid(claims):
    with pytest.raises(TokenRefused) as refused:
        await Desk(SERVER).spend(token(**claims))
    assert refused.value.code == "token_invalid"


async def test_leeway_is_for_iat_and_nbf_only():
    await Desk(SERVER).spend(token(iat=NOW + 5, nbf=NOW + 5))
    with pytest.raises(TokenRefused) as refused:
        await Desk(SERVER).spend(token(), now=NOW + 60)
    assert refused.value.code == "token_expired"
    await Desk(SERVER).spend(token(), now=NOW + 59.9)


async def test_a_spent_token_is_remembered_until_exp_plus_leeway():
    desk = Desk(SERVER)
    await desk.spend(token(exp=NOW + 10))
    with pytest.raises(TokenRefused) as refused:
        await desk.spend(token(exp=NOW + 1000), now=NOW + 14.9)
    assert refused.value.code == "token_replayed"
    await desk.spend(token(exp=NOW + 1000), now=NOW + 15)


async def test_wrong_kind_signature_and_algorithm_are_invalid():
    shared = OctKey.import_key(SERVER.as_dict(private=False)["x"], {"kid": SERVER.kid})
    header, body, signature = token().split(".")
    for bad in (
        token({"typ": "bothy-stream+jwt"}),
        token({"typ": "JWT"}),
        f"{header}.{body}.{signature[::-1]}",
        f"{header}.{body}.",
        "garbage",
        "",
        jws.serialize_compact({**HEADER, "alg": "HS256"}, b"{}", shared, algorithms=["HS256"]),
        jws.serialize_compact(HEADER, b"[]", SERVER, algorithms=["Ed25519"]),
        jws.serialize_compact({"alg": "Ed25519", "typ": HEADER["typ"]}, b"{}", SERVER, algorithms=["Ed25519"]),
    ):
        with pytest.raises(TokenRefused) as refused:
            await Desk(SERVER).spend(bad)
        assert refused.value.code == "token_invalid"


async def test_an_unknown_key_is_fetched_at_most_once_an_interval():
    other = OKPKey.generate_key("Ed25519", auto_kid=True)
    desk = Desk(SERVER)
    desk.published = [SERVER, other]
    await desk.spend(token({"kid": other.kid}, other))
    assert desk.fetches == 1
    stranger = OKPKey.generate_key("Ed25519", auto_kid=True)
    for _ in range(3):
        with pytest.raises(TokenRefused):
            await desk.spend(token({"kid": stranger.kid}, stranger, jti="two"))
    assert desk.fetches == 1


async def test_a_key_that_is_not_published_is_none():
    stranger = OKPKey.generate_key("Ed25519", auto_kid=True)
    desk = Desk(SERVER)
    with pytest.raises(TokenRefused) as refused:
        await desk.spend(token({"kid": stranger.kid}, stranger))
    assert (refused.value.code, desk.fetches) == ("token_invalid", 1)


async def test_a_bad_token_costs_no_session_of_a_new_key(monkeypatch):
    stranger, fresh = (OKPKey.generate_key("Ed25519", auto_kid=True) for _ in range(2))
    desk = Desk(SERVER, interval=60)
    with pytest.raises(TokenRefused):
        await desk.spend(token({"kid": stranger.kid}, stranger))
    desk.published = [SERVER, fresh]
    with pytest.raises(TokenRefused) as refused:
        await desk.spend(token({"kid": fresh.kid}, fresh))
    assert (refused.value.code, desk.fetches) == ("token_expired", 1), "the device comes again"
    in_a_minute = tokens.steady() + 60
    monkeypatch.setattr(tokens, "steady", lambda: in_a_minute)
    await desk.spend(token({"kid": fresh.kid}, fresh))
    assert desk.fetches == 2


async def test_a_server_that_is_away_refuses_only_unknown_keys():
    stranger = OKPKey.generate_key("Ed25519", auto_kid=True)
    desk = Desk(SERVER)
    desk.published = None
    for _ in range(3):
        with pytest.raises(TokenRefused) as refused:
            await desk.spend(token({"kid": stranger.kid}, stranger))
        assert refused.value.code == "token_expired", "the device comes again"
    assert desk.fetches == 1
    await desk.spend(token())


async def test_a_fetch_that_failed_is_repeated_soon():
    fresh = OKPKey.generate_key("Ed25519", auto_kid=True)
    desk = Desk(SERVER, retry=0.01)
    desk.published = None
    with pytest.raises(TokenRefused):
        await desk.spend(token({"kid": fresh.kid}, fresh))
    await asyncio.sleep(0.02)
    desk.published = [SERVER, fresh]
    await desk.spend(token({"kid": fresh.kid}, fresh))
    assert desk.fetches == 2


async def test_handshakes_during_a_fetch_share_it():
    fresh = OKPKey.generate_key("Ed25519", auto_kid=True)
    desk = Desk(SERVER)
    desk.published = [SERVER, fresh]
    desk.answered.clear()
    first, second = (
        asyncio.create_task(desk.spend(token({"kid": fresh.kid}, fresh, jti=jti))) for jti in ("one", "two")
    )
    await asyncio.sleep(0)
    desk.answered.set()
    await asyncio.gather(first, second)
    assert desk.fetches == 1


async def test_a_handshake_that_goes_during_its_fetch_leaves_the_next_to_fetch():
    fresh = OKPKey.generate_key("Ed25519", auto_kid=True)
    desk = Desk(SERVER)
    desk.published = [SERVER, fresh]
    desk.answered.clear()
    first, second = (
        asyncio.create_task(desk.spend(token({"kid": fresh.kid}, fresh, jti=jti))) for jti in ("one", "two")
    )
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    desk.answered.set()
    await second
    assert desk.fetches == 2


async def test_malformed_keys_change_nothing():
    desk = Desk(SERVER)
    for bad in ({}, {"keys": 3}, {"keys": [{"kty": "OKP"}]}, {"keys": [3]}):
        desk.desk.take_keys(bad)
    await desk.spend(token())
