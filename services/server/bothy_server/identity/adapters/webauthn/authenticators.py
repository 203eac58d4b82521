"""WebAuthn by the library ``webauthn``. Nothing that a client sends is an error here: it keeps the rules or it does not."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec
from webauthn import verify_authentication_response, verify_registration_response
from webauthn.helpers import bytes_to_base64url, encode_cbor, parse_attestation_object, parse_client_data_json
from webauthn.helpers.cose import COSECRV, COSEKTY, COSEAlgorithmIdentifier, COSEKey
from webauthn.helpers.structs import (
    AttestationFormat,
    AuthenticationCredential,
    AuthenticatorAssertionResponse,
    AuthenticatorAttestationResponse,
    CollectedClientData,
    RegistrationCredential,
)

from bothy_server.identity.app.passkey_proof import Answered, Assertion, Attestation, Registered

ALGORITHMS = (
    COSEAlgorithmIdentifier.EDDSA,
    COSEAlgorithmIdentifier.ECDSA_SHA_256,
    COSEAlgorithmIdentifier.RSASSA_PKCS1_v1_5_SHA_256,
)
_MAX_PUBLIC_KEY_BYTES = 1024
"""An RSA key of 4,096 bits has half of that; larger ones are slow to check with."""
# No maker of authenticators is trusted or asked for: what speaks of one is not even read.
_FORMATS = (AttestationFormat.NONE, AttestationFormat.PACKED)


class WebAuthn:
    """Implements the port ``Authenticators``."""

    def __init__(self, origins: Collection[str]) -> None:
        """``origins``: the public origins in canonical form. The relying party of each is its host."""
        self._origins = origins
        self._nobodys_key = _nobodys_key()

    def registered(self, attestation: Attestation) -> Registered | None:
        """See the port."""
        try:
            return self._registered(attestation)
        except Exception:  # noqa: BLE001 - the library lets errors of its parsers through, which differ by what was sent
            return None

    def answered(self, assertion: Assertion, public_key: bytes | None) -> Answered | None:
        """See the port."""
        try:
            return self._answered(assertion, public_key or self._nobodys_key)
        except Exception:  # noqa: BLE001 - as above
            return None

    def _registered(self, attestation: Attestation) -> Registered | None:
        client_data = self._read(attestation.client_data)
        if client_data is None or parse_attestation_object(attestation.attestation_object).fmt not in _FORMATS:
            return None
        verified = verify_registration_response(
            credential=RegistrationCredential(
                id=bytes_to_base64url(attestation.credential_id),
                raw_id=attestation.credential_id,
                response=AuthenticatorAttestationResponse(
                    client_data_json=attestation.client_data, attestation_object=attestation.attestation_object
                ),
            ),
            expected_challenge=client_data.challenge,
            expected_origin=client_data.origin,
            expected_rp_id=_relying_party(client_data.origin),
            require_user_verification=True,
            supported_pub_key_algs=list(ALGORITHMS),
        )
        key = verified.credential_public_key
        if verified.credential_id != attestation.credential_id or len(key) > _MAX_PUBLIC_KEY_BYTES:
            return None
        return Registered(client_data.challenge, key, verified.sign_count, verified.credential_backed_up)

    def _answered(self, assertion: Assertion, public_key: bytes) -> Answered | None:
        client_data = self._read(assertion.client_data)
        if client_data is None:
            return None
        verified = verify_authentication_response(
            credential=AuthenticationCredential(
                id=bytes_to_base64url(assertion.credential_id),
                raw_id=assertion.credential_id,
                response=AuthenticatorAssertionResponse(
                    client_data_json=assertion.client_data,
                    authenticator_data=assertion.authenticator_data,
                    signature=assertion.signature,
                ),
            ),
            expected_challenge=client_data.challenge,
            expected_origin=client_data.origin,
            expected_rp_id=_relying_party(client_data.origin),
            credential_public_key=public_key,
            credential_current_sign_count=0,  # the row decides, by one conditional write
            require_user_verification=True,
        )
        return Answered(client_data.challenge, verified.new_sign_count, verified.credential_backed_up)

    def _read(self, raw: bytes) -> CollectedClientData | None:
        """What the browser says; None when it was at another server's page, or a foreign page had ours inside."""
        client_data = parse_client_data_json(raw)
        return client_data if client_data.origin in self._origins and not client_data.cross_origin else None


def _relying_party(origin: str) -> str:
    host = urlsplit(origin).hostname
    assert host is not None
    return host


def _nobodys_key() -> bytes:
    """A key whose private half is gone: nothing is right under it, and checking takes as long as with any other."""
    point = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    return encode_cbor(
        {
            COSEKey.KTY: COSEKTY.EC2,
            COSEKey.ALG: COSEAlgorithmIdentifier.ECDSA_SHA_256,
            COSEKey.CRV: COSECRV.P256,
            COSEKey.X: point.x.to_bytes(32, "big"),
            COSEKey.Y: point.y.to_bytes(32, "big"),
        }
    )
