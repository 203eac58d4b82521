"""A new device is let in by a person at another one, who types the code that it shows (after RFC 8628).

The new device asks and gets two codes: it keeps the *device code* and asks with it again and again whether it is in; its
person types the *user code* where they are signed in, sees what asks, and approves it there with a fresh step-up.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from bothy_server.identity.app.api import spend_step_up
from bothy_server.identity.app.attempts import Attempts
from bothy_server.identity.app.repeats import Made, made_before, remember_made
from bothy_server.identity.domain.act import Act
from bothy_server.kernel.caller import Caller, RepeatKey
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id
from bothy_server.kernel.names import check_name
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import AuditEntry, Event, UnitOfWork
from bothy_wire.codes import CODE_BYTES, USER_CODE_BYTES, code_hash, format_code, format_user_code
from bothy_wire.ids import DeviceId, PersonId, StepUpId
from bothy_wire.signing import Purpose, verify_any

_NOT_WAITING = Problem(401, "device_login_invalid", "This login is unknown or too old; begin it anew.")
_CODE_UNKNOWN = Problem(
    404, "user_code_unknown", "No device waits with this code. It may be too old: begin the login there anew."
)


@dataclass(frozen=True, slots=True)
class DeviceLoginLimits:
    """``ttl`` and ``interval`` in seconds, ``most``: logins that wait at once (keys ``identity.device_login_*``)."""

    ttl: float
    interval: float
    most: int


@dataclass(frozen=True, slots=True)
class Asking:
    """What a device says of itself. The signature shows that it holds the key and dialled this server."""

    name: str
    signing_key: bytes
    channel_key: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Begun:
    """What the new device keeps, what it shows, and how often it may ask. Times in seconds."""

    device_code: str
    user_code: str
    expires_in_s: float
    interval_s: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """A device that waits, as the person sees it who typed its code."""

    id: UUID
    name: str
    channel_key: bytes
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class LetIn:
    """Whose device it is now."""

    device_id: DeviceId
    person_id: PersonId
    person_name: str


@dataclass(frozen=True, slots=True)
class Polled:
    """What a device that asks is told: nothing yet, or what was decided. ``too_soon``: it may not ask so often."""

    too_soon: bool
    denied: bool
    let_in: LetIn | None


class DeviceLoginStore(Protocol):
    """Logins that wait, or were decided a moment ago; each dies with its life."""

    async def add(
        self, login_id: UUID, asking: Asking, device_code_hash: bytes, user_code_hash: bytes, limits: DeviceLoginLimits
    ) -> bool:
        """False when as many wait as may."""

    async def known(self, asking: Asking) -> bool:
        """Whether one of the keys is a device's."""

    async def poll(self, device_code_hash: bytes, interval_s: float) -> Polled | None:
        """Note that the device asked; None for a login that is not there or too old."""

    async def find(self, user_code_hash: bytes) -> Waiting | None:
        """One that waits for a decision."""

    async def approve(self, login_id: UUID, person_id: PersonId, device_id: DeviceId, ttl_s: float) -> bool:
        """Make it a device of this person, which may hear of it for so long. One caller wins.

        False also when the keys belong to a device by now.
        """

    async def deny(self, login_id: UUID, person_id: PersonId) -> bool:
        """Refuse it. One caller wins."""

    async def prune(self) -> int:
        """Delete what is over; how many rows."""


class DeviceLogins:
    """Use cases of the device that asks and of the person who decides."""

    def __init__(
        self,
        uow: UnitOfWork,
        clock: Clock,
        origins: Collection[str],
        attempts: Attempts,
        limits: DeviceLoginLimits,
    ) -> None:
        """``origins``: audiences that a signature may name. ``attempts`` bounds how fast a person may guess codes."""
        self._uow = uow
        self._clock = clock
        self._origins = origins
        self._attempts = attempts
        self._limits = limits

    # ---- the device that asks -----------------------------------------------------------------------------------

    async def begin(self, asking: Asking) -> Begun:
        """A login that waits. Raises 401 ``device_login_invalid``, 422 ``name_invalid``, 429 ``device_login_limit``.

        Also 409 ``device_exists``.
        """
        fields = (asking.signing_key, asking.channel_key, asking.name)
        if not verify_any(asking.signing_key, asking.signature, Purpose.DEVICE_ASK, self._origins, *fields):
            raise _NOT_WAITING
        check_name(asking.name)
        device_code = format_code(secrets.token_bytes(CODE_BYTES))
        user_code = format_user_code(secrets.token_bytes(USER_CODE_BYTES))
        async with self._uow() as unit:
            if await unit.of(DeviceLoginStore).known(asking):
                raise Problem(409, "device_exists", "This key is a device's already; make new keys for a new login.")
            if not await unit.of(DeviceLoginStore).add(
                new_id(self._clock.now()), asking, code_hash(device_code), code_hash(user_code), self._limits
            ):
                raise Problem(
                    429,
                    "device_login_limit",
                    "Too many devices wait to be let in. Try again, or use an invite.",
                    retry_after_s=math.ceil(self._limits.ttl / 10),
                )
        return Begun(device_code, user_code, self._limits.ttl, self._limits.interval)

    async def poll(self, device_code: str) -> LetIn | None:
        """Whose device it is now, or None as long as nobody decided; asked again it is told again.

        Raises 401 ``device_login_invalid``, 403 ``device_login_denied``, 429 ``slow_down``.
        """
        async with self._uow() as unit:
            asked = await unit.of(DeviceLoginStore).poll(code_hash(device_code), self._limits.interval)
        if asked is None:
            raise _NOT_WAITING
        if asked.denied:
            raise Problem(403, "device_login_denied", "The login was denied on the other device.")
        if asked.too_soon:
            wait_s = math.ceil(self._limits.interval)
            raise Problem(429, "slow_down", f"Ask every {wait_s} s.", retry_after_s=wait_s)
        return asked.let_in

    # ---- the person who decides ---------------------------------------------------------------------------------

    async def find(self, caller: Caller, user_code: str) -> Waiting:
        """The device that shows this code. Raises 404 ``user_code_unknown``, 429 where too many codes were wrong."""
        async with (
            self._attempts.guarding("user_code", caller.person_id, wrong=_CODE_UNKNOWN.code),
            self._uow() as unit,
        ):
            waiting = await unit.of(DeviceLoginStore).find(code_hash(user_code))
            if waiting is None:
                raise _CODE_UNKNOWN
        return waiting

    async def approve(
        self, caller: Caller, login_id: UUID, step_up_id: StepUpId, repeat: RepeatKey | None = None
    ) -> DeviceId:
        """Make the device one of the caller's. Raises 404 ``user_code_unknown``, 401 ``step_up_required``."""
        device_id = DeviceId(new_id(self._clock.now()))
        async with self._uow() as unit:
            if (made := await made_before(unit, caller, repeat)) is not None:
                return DeviceId(made.id)
            if not await unit.of(DeviceLoginStore).approve(login_id, caller.person_id, device_id, self._limits.ttl):
                raise _CODE_UNKNOWN
            await spend_step_up(unit, caller, step_up_id, Act("manage_account"))
            unit.audit(_entry(caller, "device.approve", "approved", device_id))
            unit.audit(_entry(caller, "device.add", "approval", device_id))
            unit.emit(Event("rights.changed", person_id=caller.person_id, device_id=device_id))
            await remember_made(unit, caller, repeat, Made(device_id))
        return device_id

    async def deny(self, caller: Caller, login_id: UUID) -> None:
        """Send the device away. Raises 404 ``user_code_unknown``."""
        async with self._uow() as unit:
            if not await unit.of(DeviceLoginStore).deny(login_id, caller.person_id):
                raise _CODE_UNKNOWN
            unit.audit(_entry(caller, "device.approve", "denied", None))


def _entry(caller: Caller, action: str, code: str, device_id: DeviceId | None) -> AuditEntry:
    return AuditEntry(
        action,
        code,
        person_id=caller.person_id,
        device_id=caller.device_id,
        subject_person_id=caller.person_id if device_id else None,
        subject_device_id=device_id,
    )
