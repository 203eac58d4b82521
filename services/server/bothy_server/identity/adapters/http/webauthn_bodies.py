"""What a browser's WebAuthn takes and gives, as JSON.

Options have the names and the base64url of WebAuthn Level 3, so that a page hands them to
``PublicKeyCredential.parseCreationOptionsFromJSON`` or ``parseRequestOptionsFromJSON`` as they are. They name no relying
party: a browser takes the host that it is at. What comes back has the fields that are checked and no others, as bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from bothy_server.identity.app import passkey_proof

_ALGORITHMS = (-8, -7, -257)
"""EdDSA, ES256, RS256 (COSE), the most wanted first."""

CredentialId = Annotated[bytes, Meta(min_length=1, max_length=1023)]
ClientData = Annotated[bytes, Meta(min_length=1, max_length=4096)]


class Descriptor(msgspec.Struct, frozen=True):
    """A passkey by its credential id."""

    id: str
    type: str = "public-key"


class Algorithm(msgspec.Struct, frozen=True):
    """A kind of key, by its COSE number."""

    alg: int
    type: str = "public-key"


class RelyingParty(msgspec.Struct, frozen=True):
    """Whom a person thinks they deal with."""

    name: str = "bothy"


class User(msgspec.Struct, frozen=True, rename="camel"):
    """Whose passkey it is; ``id`` is the person's."""

    id: str
    name: str
    display_name: str


class Selection(msgspec.Struct, frozen=True, rename="camel"):
    """The authenticator keeps the passkey, and sees that it is the person."""

    resident_key: str = "required"
    require_resident_key: bool = True
    user_verification: str = "required"


class CreationOptions(msgspec.Struct, frozen=True, rename="camel"):
    """``PublicKeyCredentialCreationOptionsJSON``. ``timeout`` is in milliseconds."""

    challenge: str
    timeout: int
    user: User
    exclude_credentials: list[Descriptor]
    rp: RelyingParty = RelyingParty()
    pub_key_cred_params: tuple[Algorithm, ...] = tuple(map(Algorithm, _ALGORITHMS))
    authenticator_selection: Selection = Selection()
    attestation: str = "none"


class RequestOptions(msgspec.Struct, frozen=True, rename="camel"):
    """``PublicKeyCredentialRequestOptionsJSON``. ``timeout`` is in milliseconds; nothing allowed means any passkey."""

    challenge: str
    timeout: int
    allow_credentials: list[Descriptor]
    user_verification: str = "required"


class Attestation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new credential: ``rawId``, ``response.clientDataJSON`` and ``response.attestationObject``."""

    id: CredentialId
    client_data: ClientData
    attestation_object: Annotated[bytes, Meta(min_length=1, max_length=8192)]

    def given(self) -> passkey_proof.Attestation:
        """As the use cases take it."""
        return passkey_proof.Attestation(self.id, self.client_data, self.attestation_object)


class Assertion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A credential's answer: ``rawId`` and of ``response`` ``clientDataJSON``, ``authenticatorData``, ``signature``, ``userHandle``."""

    id: CredentialId
    client_data: ClientData
    authenticator_data: Annotated[bytes, Meta(min_length=1, max_length=2048)]
    signature: Annotated[bytes, Meta(min_length=1, max_length=1024)]
    user_handle: Annotated[bytes, Meta(min_length=1, max_length=64)] | None = None

    def given(self) -> passkey_proof.Assertion:
        """As the use cases take it."""
        return passkey_proof.Assertion(
            self.id, self.client_data, self.authenticator_data, self.signature, self.user_handle
        )


def creation_options(
    challenge: bytes, life_s: float, person_id: UUID, person_name: str, held: Iterable[bytes]
) -> CreationOptions:
    """Of a new passkey for a person; their authenticators that hold one already are left out."""
    user = User(_text(person_id.bytes), person_name, person_name)
    return CreationOptions(_text(challenge), _milliseconds(life_s), user, _descriptors(held))


def request_options(challenge: bytes, life_s: float, allowed: Iterable[bytes] = ()) -> RequestOptions:
    """Of an answer with one of these passkeys, or with any."""
    return RequestOptions(_text(challenge), _milliseconds(life_s), _descriptors(allowed))


def _descriptors(credential_ids: Iterable[bytes]) -> list[Descriptor]:
    return [Descriptor(_text(each)) for each in credential_ids]


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
