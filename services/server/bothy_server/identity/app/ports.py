"""What identity needs from outside."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar
from uuid import UUID

from bothy_server.identity.domain.act import Act
from bothy_server.identity.domain.rights import Right
from bothy_server.identity.domain.tokens import Token
from bothy_server.kernel.caller import DeviceKind
from bothy_server.kernel.unit import Unit
from bothy_wire.ids import DeviceId, HostId, PersonId, StepUpId

T = TypeVar("T", bound=Token)


class TokenInvalid(Exception):  # noqa: N818 - a state of the token
    """A token that is malformed, not ours, of another kind or not signed by a known key."""


class TokenExpired(TokenInvalid):
    """A token of ours whose life is over."""


class Tokens(Protocol):
    """Mints and reads the tokens of ``identity/domain/tokens.py``; needs the key store only, never the database."""

    def mint(self, token: Token) -> tuple[str, float]:
        """The signed text and its life in seconds."""

    def read(self, kind: type[T], text: str) -> T:
        """The token inside. Raises :class:`TokenInvalid` or :class:`TokenExpired`."""

    def jwks(self) -> dict[str, Any]:
        """The public keys that verify them, as a JWK set."""

    def sign(self, signed: bytes) -> tuple[str, bytes]:
        """A raw signature with the current key: key id and 64 bytes."""

    def verify(self, kid: str, signed: bytes, signature: bytes) -> bool:
        """Whether a key of ours, also a retired one, made this signature."""


@dataclass(frozen=True, slots=True)
class Device:
    """One client of a person, with its own keys (raw public bytes)."""

    id: DeviceId
    person_id: PersonId
    name: str
    kind: DeviceKind
    signing_key: bytes
    channel_key: bytes
    usable: bool
    """Neither the device is revoked nor its person disabled."""
    revoked: bool
    login_over: bool
    """A browser that has to sign in again with a passkey."""
    is_operator: bool
    person_name: str


@dataclass(frozen=True, slots=True)
class DeviceKeys:
    """The two public keys of a device, raw."""

    signing: bytes
    channel: bytes


Method = Literal["device_key", "passkey"]
"""How a person confirmed an act."""


ChallengePurpose = Literal["login", "passkey_login", "passkey_register"]
"""What a challenge is for that confirms no act."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """A random value that is answered once. ``passkey_login`` is for nobody in particular, the others are for one device."""

    value: bytes
    device_id: DeviceId | None
    wanted: ChallengePurpose | Act


class PersonStore(Protocol):
    """Persons, invites and devices."""

    async def add_person(self, person_id: PersonId, name: str, *, is_operator: bool) -> bool:
        """False when the name is taken."""

    async def find_person(self, person: str) -> PersonId | None:
        """An enabled person by id or exact name."""

    async def add_invite(self, invite_id: UUID, person_id: PersonId, code_hash: bytes, ttl_s: float) -> None:
        """Store an invite by the hash of its code."""

    async def use_invite(self, code_hash: bytes) -> tuple[PersonId, str] | None:
        """Spend an unexpired, unused invite of an enabled person: id and name. One caller wins."""

    async def add_device(
        self, device_id: DeviceId, person_id: PersonId, name: str, signing_key: bytes, channel_key: bytes
    ) -> bool:
        """A device of the command line, by an invite. False when one of the keys is known already."""

    async def add_browser(
        self,
        device_id: DeviceId,
        person_id: PersonId,
        name: str,
        keys: DeviceKeys,
        login_ttl_s: float,
        *,
        added_by: Literal["invite", "passkey"],
    ) -> bool:
        """A browser, signed in for so long. False as above."""

    async def hold_keys(self, keys: DeviceKeys) -> None:
        """Until the unit ends nobody revokes the device with this signing key, if there is one."""

    async def renew_login(self, person_id: PersonId, keys: DeviceKeys, login_ttl_s: float) -> DeviceId | None:
        """Sign in the person's browser with exactly these keys again; None when they have none that may act."""

    async def device(self, device_id: DeviceId) -> Device | None:
        """A device with what is needed to decide whether it may act."""

    async def hold_device(self, device_id: DeviceId) -> Device | None:
        """The same; nobody else changes it until the unit ends."""

    async def touch_device(self, device_id: DeviceId) -> None:
        """Note that the device was used."""


class ChallengeStore(Protocol):
    """Challenges and step-ups; each is used once."""

    async def add(self, challenge_id: UUID, challenge: Challenge, ttl_s: float) -> bool:
        """Store a challenge; only its hash is written. False when its device or host does not exist."""

    async def use(self, value: bytes, device_id: DeviceId | None, purpose: ChallengePurpose) -> bool:
        """Spend an unexpired challenge of this device for this purpose. One caller wins."""

    async def use_step_up(self, value: bytes, device_id: DeviceId) -> Act | None:
        """Spend an unexpired step-up challenge of this device: the act that it was made for. One caller wins."""

    async def add_step_up(
        self, step_up_id: StepUpId, person_id: PersonId, device_id: DeviceId, act: Act, method: Method, ttl_s: float
    ) -> None:
        """Store what was confirmed, and how."""

    async def consume_step_up(self, step_up_id: StepUpId, person_id: PersonId, device_id: DeviceId, act: Act) -> bool:
        """Spend an unexpired step-up of this device for exactly this act. One caller wins."""

    async def prune(self) -> int:
        """Delete what expired; how many rows."""


class RightStore(Protocol):
    """Rights of persons on hosts."""

    async def right(self, person_id: PersonId, host_id: HostId) -> Right | None:
        """The right ``terminal`` of this person on this host at this moment."""

    async def rights(self, person_id: PersonId) -> dict[HostId, Right]:
        """All rights of a person."""

    async def add_owner(self, person_id: PersonId, host_id: HostId) -> bool:
        """Make a person an owner; False when they are one."""

    async def add_grant(
        self, person_id: PersonId, host_id: HostId, session_user: str, expires_at: datetime | None
    ) -> bool:
        """Give the right ``terminal`` as one session user, or change its end; False when that has passed already."""


class RightEvents(Protocol):
    """What identity tells upwards, inside the unit that decided it: sessions end with the right that carried them."""

    async def device_revoked(self, unit: Unit, device_id: DeviceId) -> None:
        """Nothing may go on at this device."""

    async def person_disabled(self, unit: Unit, person_id: PersonId) -> None:
        """Nothing of this person may go on."""

    async def right_lost(self, unit: Unit, person_id: PersonId, host_id: HostId) -> None:
        """The person has fewer rights on this host than before: what they do not cover any more may not go on."""
