"""Signing in with a passkey: a browser becomes a device of the person, or one that was signs in again."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass

from bothy_server.identity.app.passkey_proof import Assertion, PasskeyProof
from bothy_server.identity.app.ports import Challenge, ChallengeStore, DeviceKeys, PersonStore, Tokens
from bothy_server.identity.domain.tokens import AccessToken
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.names import check_name
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Event, Unit, UnitOfWork
from bothy_wire.ids import DeviceId, PersonId
from bothy_wire.limits import CHALLENGE_BYTES
from bothy_wire.signing import Purpose, verify_any

_NOBODYS = bytes(CHALLENGE_BYTES)


@dataclass(frozen=True, slots=True)
class PasskeyLoginLimits:
    """In seconds (keys ``identity.passkey_challenge_ttl``, ``identity.browser_login_ttl``)."""

    challenge_ttl: float
    browser_login_ttl: float


@dataclass(frozen=True, slots=True)
class Browser:
    """What a browser says of itself. The signature shows that it holds the key and dialled this server."""

    name: str
    keys: DeviceKeys
    signature: bytes


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Whose device it is, and its access token with the token's life in seconds."""

    device_id: DeviceId
    person_id: PersonId
    person_name: str
    access_token: str
    expires_in_s: float


class PasskeyLogin:
    """Use cases of anybody."""

    def __init__(
        self,
        uow: UnitOfWork,
        tokens: Tokens,
        clock: Clock,
        origins: Collection[str],
        proof: PasskeyProof,
        limits: PasskeyLoginLimits,
    ) -> None:
        """``origins``: the audiences that the device's signature may name."""
        self._uow = uow
        self._tokens = tokens
        self._clock = clock
        self._origins = origins
        self._proof = proof
        self._limits = limits

    async def challenge(self) -> tuple[bytes, float]:
        """A challenge for whoever has a passkey, and its life in seconds."""
        value = secrets.token_bytes(CHALLENGE_BYTES)
        async with self._uow() as unit:
            wanted = Challenge(value, None, "passkey_login")
            await unit.of(ChallengeStore).add(new_id(self._clock.now()), wanted, self._limits.challenge_ttl)
        return value, self._limits.challenge_ttl

    async def login(self, assertion: Assertion, browser: Browser) -> SignedIn:
        """Raises 401 ``login_refused`` for all that does not fit, 409 ``device_exists`` for keys of another device."""
        check_name(browser.name)
        refusal = Problem(
            401, "login_refused", "This passkey is not known here, or its answer came too late; try again."
        )
        async with self._proof.watched(refusal), self._uow() as unit:
            # A revocation holds the device too before it removes the device's passkeys: in one order nobody waits in a ring.
            await unit.of(PersonStore).hold_keys(browser.keys)
            proven = await self._proof.check(unit, assertion)
            challenge = _NOBODYS if proven is None else proven.answered.challenge
            signed = self._signed(browser, challenge)
            if proven is None or not signed or assertion.user_handle is None:
                raise refusal
            if not await unit.of(ChallengeStore).use(challenge, None, "passkey_login"):
                raise refusal
            await self._proof.note_use(unit, proven)
            person_id = proven.passkey.person_id
            device_id = await self._device(unit, person_id, browser)
            unit.audit(AuditEntry("device.login", "passkey", person_id=person_id, device_id=device_id))
        access_token, expires_in_s = self._tokens.mint(AccessToken(person_id, device_id))
        return SignedIn(device_id, person_id, proven.passkey.person_name, access_token, expires_in_s)

    async def _device(self, unit: Unit, person_id: PersonId, browser: Browser) -> DeviceId:
        store, ttl_s = unit.of(PersonStore), self._limits.browser_login_ttl
        known = await store.renew_login(person_id, browser.keys, ttl_s)
        if known is not None:
            return known
        device_id = DeviceId(new_id(self._clock.now()))
        if not await store.add_browser(device_id, person_id, browser.name, browser.keys, ttl_s, added_by="passkey"):
            raise Problem(409, "device_exists", "These keys belong to another device; make new keys and log in again.")
        unit.audit(AuditEntry("device.add", "passkey", person_id=person_id, device_id=device_id))
        unit.emit(Event("rights.changed", person_id=person_id, device_id=device_id))
        return device_id

    def _signed(self, browser: Browser, challenge: bytes) -> bool:
        keys = browser.keys
        fields = (challenge, keys.signing, keys.channel, browser.name)
        return verify_any(keys.signing, browser.signature, Purpose.PASSKEY_LOGIN, self._origins, *fields)
