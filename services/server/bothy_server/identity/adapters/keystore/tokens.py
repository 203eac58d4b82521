"""Tokens as signed JWTs over the key store (alg ``Ed25519``)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cryptography.exceptions import InvalidSignature
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, OKPKey

from bothy_server.identity.adapters.keystore.ring import KeyRing
from bothy_server.identity.adapters.keystore.rotation import SigningKey
from bothy_server.identity.adapters.keystore.used import UsedTokens
from bothy_server.identity.app.ports import TokenExpired, TokenInvalid
from bothy_server.identity.domain.tokens import AccessToken, DrainToken, ProbeToken, SessionToken, StreamToken, Token
from bothy_server.kernel.clock import Clock
from bothy_wire.ids import DeviceId, PersonId, SessionId, parse_id

_ALGORITHMS = ["Ed25519"]
_ISSUER = "bothy"

T = TypeVar("T", bound=Token)


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """Seconds (keys ``identity.access_token_ttl``, ``terminal.session_token_ttl``, ``identity.clock_leeway``, ``secrets.key_publish_lead``)."""

    access_ttl: float
    session_ttl: float
    leeway: float
    publish_lead: float


@dataclass(frozen=True, slots=True)
class _Kind:
    typ: str
    audience: str
    claims: Callable[[Any], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], Token]


def _only_hosts_read(_claims: Mapping[str, Any]) -> Token:
    raise TokenInvalid("a session token is for its host")


_KINDS: dict[type, _Kind] = {
    AccessToken: _Kind(
        "bothy-access+jwt",
        "api",
        lambda t: {"sub": str(t.person_id), "device": str(t.device_id)},
        lambda c: AccessToken(PersonId(parse_id(c["sub"])), DeviceId(parse_id(c["device"]))),
    ),
    StreamToken: _Kind(
        "bothy-stream+jwt",
        "relay",
        lambda t: {"sub": str(t.session_id), "device": str(t.device_id), "attach_seq": t.attach_seq},
        lambda c: StreamToken(SessionId(parse_id(c["sub"])), DeviceId(parse_id(c["device"])), int(c["attach_seq"])),
    ),
    SessionToken: _Kind(
        "bothy-session+jwt",
        "host",
        lambda t: {
            "sub": str(t.session_id),
            "host": str(t.host_id),
            "device": str(t.device_id),
            "profile": t.profile,
            "session_user": t.session_user,
            "cnf": {"jkt": t.channel_thumbprint},
        },
        _only_hosts_read,
    ),
    ProbeToken: _Kind(
        "bothy-probe+jwt",
        "probe",
        lambda t: {"hold_s": t.hold_s},
        lambda c: ProbeToken(float(c["hold_s"])),
    ),
    DrainToken: _Kind("bothy-drain+jwt", "drain", lambda _: {}, lambda _: DrainToken()),
}


class KeyStoreTokens:
    """Implements the port ``Tokens`` over the keys of :attr:`keys`."""

    def __init__(self, directory: Path, clock: Clock, limits: TokenLimits) -> None:
        """Raises ``KeyStoreError`` when there is no key to sign with."""
        self.keys = KeyRing(directory, clock, limits.publish_lead, limits.leeway)
        self._clock = clock
        self._limits = limits
        self._verifying: tuple[tuple[SigningKey, ...], KeySet] = (), KeySet([])

    def jwks(self) -> dict[str, Any]:
        """The published keys."""
        return dict(self._published().as_dict(private=False))

    def mint(self, token: Token) -> tuple[str, float]:
        """A JWT with ``iss``, ``aud``, ``iat``, ``nbf``, ``exp`` and a fresh ``jti``."""
        kind = _KINDS[type(token)]
        life = self._limits.access_ttl if isinstance(token, AccessToken) else self._limits.session_ttl
        key, now = self.keys.signs, self._clock.now().timestamp()
        times = {"iat": now, "nbf": now, "exp": now + life, "jti": secrets.token_urlsafe(16)}
        claims = {"iss": _ISSUER, "aud": kind.audience, **times, **kind.claims(token)}
        header = {"alg": "Ed25519", "typ": kind.typ, "kid": key.kid}
        return jwt.encode(header, claims, OKPKey.import_key(key.key), algorithms=_ALGORITHMS), life

    def read(self, kind: type[T], text: str) -> T:
        """Checks signature, ``typ``, ``iss``, ``aud`` and the times."""
        return self._read(kind, text, self._clock.now().timestamp())[0]

    def read_once(self, kind: type[T], text: str, used: UsedTokens) -> T:
        """The same, and from then on ``used`` knows the token: it is refused as invalid."""
        now = self._clock.now().timestamp()
        token, claims = self._read(kind, text, now)
        if not used.take(claims["jti"], float(claims["exp"]), now):
            raise TokenInvalid("used already")
        return token

    def sign(self, signed: bytes) -> tuple[str, bytes]:
        """A raw signature with the current key."""
        key = self.keys.signs
        return key.kid, key.key.sign(signed)

    def verify(self, kid: str, signed: bytes, signature: bytes) -> bool:
        """Retired keys count: what they signed for a host stays true."""
        key = self.keys.of(kid)
        if key is None:
            return False
        try:
            key.key.public_key().verify(signature, signed)
        except InvalidSignature:
            return False
        return True

    def _read(self, kind: type[T], text: str, now: float) -> tuple[T, Mapping[str, Any]]:
        wanted = _KINDS[kind]
        try:
            decoded = jwt.decode(text, self._published(), algorithms=_ALGORITHMS)
            claims = decoded.claims
            if (decoded.header.get("typ"), claims["iss"], claims["aud"]) != (wanted.typ, _ISSUER, wanted.audience):
                raise TokenInvalid("a token of another kind")
            early = max(float(claims["iat"]), float(claims["nbf"])) > now + self._limits.leeway
            if early or not claims["jti"]:
                raise TokenInvalid("not valid yet")
            if float(claims["exp"]) <= now:
                raise TokenExpired("expired")
            token = wanted.read(claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise TokenInvalid("not a token of ours") from error
        assert isinstance(token, kind)
        return token, claims

    def _published(self) -> KeySet:
        keys = self.keys.published
        if self._verifying[0] != keys:
            self._verifying = keys, KeySet([_jwk(each) for each in keys])
        return self._verifying[1]


def _jwk(key: SigningKey) -> OKPKey:
    return OKPKey.import_key(key.key.public_key(), {"kid": key.kid, "use": "sig", "alg": "Ed25519"})
