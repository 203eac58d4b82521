"""Session tokens: the server's word that one device may enter one session, once (``docs/spec/protocol.md``, Handshake)."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from joserfc import jws
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from msgspec import Meta, Struct

from bothy_host.clock import steady
from bothy_wire.signing import thumbprint

Refusal = Literal["token_invalid", "token_expired", "token_replayed"]

_ALGORITHM = "Ed25519"
_TYPE = "bothy-session+jwt"


class TokenRefused(Exception):  # noqa: N818 - an answer to the device, not a fault of this program
    """The token does not admit this device to this session. ``code`` goes into the handshake's answer."""

    def __init__(self, code: Refusal, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class KeysUnavailable(Exception):  # noqa: N818 - named for what the caller learns
    """The server's keys cannot be fetched now."""


class Confirmation(Struct, frozen=True):
    """The key that the token is bound to (RFC 7800): thumbprint of the device's channel key."""

    jkt: str


class Claims(Struct, frozen=True):
    """What a session token says."""

    iss: Literal["bothy"]
    aud: Literal["host"]
    sub: UUID
    host: UUID
    device: UUID
    jti: Annotated[str, Meta(min_length=1, max_length=128)]
    iat: float
    nbf: float
    exp: float
    profile: str
    session_user: str
    cnf: Confirmation


@dataclass(frozen=True, slots=True)
class Presented:
    """A token as it arrived: in which session, from the owner of which channel key, at which cluster time."""

    token: str
    session_id: UUID
    device_key: bytes
    now: float


class TokenDesk:
    """Accepts each token once.

    It holds the server's public keys; an unknown one is fetched: not again for ``fetch_interval`` seconds after a fetch, for
    ``retry_interval`` seconds after one that failed.
    """

    def __init__(
        self,
        *,
        host_id: UUID,
        leeway: float,
        fetch_interval: float,
        retry_interval: float,
        fetch: Callable[[], Awaitable[dict[str, Any]]],
    ) -> None:
        """``fetch`` reads the server's JWKS and raises :class:`KeysUnavailable`."""
        self._host_id = host_id
        self._leeway = leeway
        self._fetch = fetch
        self._fetch_interval = fetch_interval
        self._retry_interval = retry_interval
        self._fetching = asyncio.Lock()
        self._next_fetch = steady()
        self._failed: KeysUnavailable | None = None
        self._keys = KeySet([])
        self._spent: dict[str, float] = {}

    def take_keys(self, jwks: dict[str, Any]) -> None:
        """Replace the keys by those of a hello, a ``host.keys`` or a fetch. A malformed set changes nothing."""
        try:
            self._keys = KeySet.import_key_set({"keys": jwks["keys"]})
        except (JoseError, KeyError, TypeError, ValueError):
            return

    async def spend(self, presented: Presented) -> Claims:
        """Check everything and mark the token as used. Raises :class:`TokenRefused`."""
        claims = await self._verified(presented.token)
        now = presented.now
        bound = hmac.compare_digest(claims.cnf.jkt, thumbprint(presented.device_key))
        if claims.sub != presented.session_id or claims.host != self._host_id or not bound:
            raise TokenRefused("token_invalid", "it was issued for another session, host or device key")
        if max(claims.iat, claims.nbf) > now + self._leeway:
            raise TokenRefused("token_invalid", "it is not valid yet")
        if claims.exp <= now:
            raise TokenRefused("token_expired", "it has expired")
        self._spent = {jti: until for jti, until in self._spent.items() if until > now}
        if claims.jti in self._spent:
            raise TokenRefused("token_replayed", "it was used before")
        self._spent[claims.jti] = claims.exp + self._leeway
        return claims

    async def _verified(self, token: str) -> Claims:
        try:
            return self._open(token)
        except InvalidKeyIdError:
            fetched = await self._refresh()
        try:
            return self._open(token)
        except InvalidKeyIdError:
            if fetched:
                raise TokenRefused("token_invalid", "the relay signs with a key that it does not publish") from None
            # Somebody's bad token must not cost the good one of a new key that comes before the next fetch.
            raise TokenRefused("token_expired", "it is signed with a key that could not be looked for yet") from None

    def _open(self, token: str) -> Claims:
        try:
            opened = jws.deserialize_compact(token, self._keys, algorithms=[_ALGORITHM])
            header = opened.headers()
            if header.get("typ") != _TYPE or "kid" not in header:
                raise TokenRefused("token_invalid", "it is no session token")
            return msgspec.json.decode(opened.payload, type=Claims)
        except InvalidKeyIdError:
            raise
        except (JoseError, ValueError, TypeError, msgspec.MsgspecError) as error:
            raise TokenRefused("token_invalid", "it does not verify") from error

    async def _refresh(self) -> bool:
        """Whether the keys were fetched just now. Raises :class:`TokenRefused` when they cannot be."""
        async with self._fetching:  # who comes while a fetch is under way gets its answer
            due = steady() >= self._next_fetch
            if due:
                try:
                    self.take_keys(await self._fetch())
                except KeysUnavailable as error:
                    self._failed, self._next_fetch = error, steady() + self._retry_interval
                else:
                    self._failed, self._next_fetch = None, steady() + self._fetch_interval
        if self._failed is not None:
            # The token may be good. Of the answers that make a device come again with a fresh one this is the nearest.
            raise TokenRefused("token_expired", f"the relay's keys cannot be fetched: {self._failed}")
        return due
