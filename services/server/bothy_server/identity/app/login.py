"""How a device becomes known and signs in with its key."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass

from bothy_server.identity.app.api import sign_in_required
from bothy_server.identity.app.ports import Challenge, ChallengeStore, DeviceKeys, PersonStore, Tokens
from bothy_server.identity.domain.tokens import AccessToken
from bothy_server.kernel.caller import DeviceKind
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.names import check_name
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Unit, UnitOfWork
from bothy_wire.codes import code_hash
from bothy_wire.ids import DeviceId, PersonId
from bothy_wire.limits import CHALLENGE_BYTES
from bothy_wire.signing import Purpose, verify_any

_INVITE_INVALID = Problem(
    401, "invite_invalid", "This invite is unknown, used or expired. Ask the operator for a new one."
)
_LOGIN_REFUSED = Problem(
    401, "login_refused", "This device is not known here or was revoked. Log in with a new invite."
)
# Only who holds the key of such a device is told: to all others it is as unknown as any.
_DEVICE_REVOKED = Problem(
    401, "device_revoked", "This device was revoked. Log out here, and log in again with a new invite."
)
_PERSON_DISABLED = Problem(401, "person_disabled", "This account was disabled. Ask an operator.")
_DECOY_KEY = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
"""Checked in place of an unknown device's, so that the time of an answer tells nothing. From RFC 8032; lets nobody in."""


@dataclass(frozen=True, slots=True)
class LoginLimits:
    """Lives in seconds (keys ``identity.*``)."""

    challenge_ttl: float
    browser_login_ttl: float


@dataclass(frozen=True, slots=True)
class NewDevice:
    """What a device says of itself when it redeems an invite."""

    code: str
    name: str
    signing_key: bytes
    channel_key: bytes
    signature: bytes
    kind: DeviceKind = "cli"


@dataclass(frozen=True, slots=True)
class Redeemed:
    """Who the device belongs to now."""

    device_id: DeviceId
    person_id: PersonId
    person_name: str


class Login:
    """A device joins with an invite, and signs in with its key."""

    def __init__(
        self, uow: UnitOfWork, tokens: Tokens, clock: Clock, origins: Collection[str], limits: LoginLimits
    ) -> None:
        """``origins``: the server's public origins; a signature made for any other audience is refused."""
        self._uow = uow
        self._tokens = tokens
        self._clock = clock
        self._origins = origins
        self._limits = limits

    async def redeem(self, new: NewDevice) -> Redeemed:
        """Add a device. The signature proves that the caller holds the signing key and dialled this server."""
        hashed = code_hash(new.code)
        fields: list[bytes | str] = [hashed, new.signing_key, new.channel_key, new.name]
        if new.kind == "browser":  # devices of the command line signed without a kind before there were others
            fields.append(new.kind)
        if not self._signed(new.signing_key, new.signature, Purpose.INVITE_REDEEM, *fields):
            raise _INVITE_INVALID
        check_name(new.name)
        async with self._uow() as unit:
            invited = await unit.of(PersonStore).use_invite(hashed)
            if invited is None:
                raise _INVITE_INVALID
            person_id, person_name = invited
            device_id = DeviceId(new_id(self._clock.now()))
            if not await self._add_device(unit, device_id, person_id, new):
                raise Problem(
                    409, "device_exists", "This key belongs to a device already; make new keys for a new login."
                )
            unit.audit(AuditEntry("device.add", "invite", person_id=person_id, device_id=device_id))
        return Redeemed(device_id, person_id, person_name)

    async def challenge(self, device_id: DeviceId) -> tuple[bytes, float]:
        """A login challenge and its life in seconds. An unknown device gets one too: the answer tells nothing."""
        value = secrets.token_bytes(CHALLENGE_BYTES)
        async with self._uow() as unit:
            login = Challenge(value, device_id, "login")
            await unit.of(ChallengeStore).add(new_id(self._clock.now()), login, self._limits.challenge_ttl)
        return value, self._limits.challenge_ttl

    async def token(self, device_id: DeviceId, challenge: bytes, signature: bytes) -> tuple[str, float]:
        """An access token and its life in seconds, for a device that signed its challenge."""
        async with self._uow() as unit:
            # Held, since whoever revokes it holds that first, too, and forgets its challenges then.
            device = await unit.of(PersonStore).hold_device(device_id)
            spent = await unit.of(ChallengeStore).use(challenge, device_id, "login")
            key = _DECOY_KEY if device is None else device.signing_key
            signed = self._signed(key, signature, Purpose.DEVICE_LOGIN, challenge, str(device_id))
            if device is None or not spent or not signed:
                raise _LOGIN_REFUSED
            if not device.usable:
                raise _DEVICE_REVOKED if device.revoked else _PERSON_DISABLED
            if device.login_over:
                raise sign_in_required()
            await unit.of(PersonStore).touch_device(device_id)
        return self._tokens.mint(AccessToken(device.person_id, device_id))

    async def _add_device(self, unit: Unit, device_id: DeviceId, person_id: PersonId, new: NewDevice) -> bool:
        store = unit.of(PersonStore)
        match new.kind:
            case "cli":
                return await store.add_device(device_id, person_id, new.name, new.signing_key, new.channel_key)
            case "browser":
                keys, ttl_s = DeviceKeys(new.signing_key, new.channel_key), self._limits.browser_login_ttl
                return await store.add_browser(device_id, person_id, new.name, keys, ttl_s, added_by="invite")

    def _signed(self, key: bytes, signature: bytes, purpose: Purpose, *fields: bytes | str) -> bool:
        return verify_any(key, signature, purpose, self._origins, *fields)
