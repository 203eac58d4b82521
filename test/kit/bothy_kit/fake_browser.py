"""A browser as a device: its own keys, and an authenticator for what a key alone may not do."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import asdict
from typing import Any

from bothy_kit.authenticator import Assertion, Attestation, Authenticator
from bothy_kit.fake_device import Answer, FakeDevice, b64
from bothy_wire.codes import code_hash
from bothy_wire.ids import DeviceId, HostId, parse_id
from bothy_wire.signing import Purpose, sign


class FakeBrowser(FakeDevice):
    """One browser of a person; several may share an authenticator, as one that is carried about."""

    def __init__(self, origin: str, url: str, authenticator: Authenticator | None = None) -> None:
        super().__init__(origin, url)
        self.authenticator = authenticator or Authenticator()

    async def redeem(self, invite: str, name: str = "browser") -> Answer:
        """Become a device by an invite."""
        signature = sign(
            self.signing_key, Purpose.INVITE_REDEEM, self.origin, code_hash(invite), *self._keys, name, "browser"
        )
        body = {"code": invite, "kind": "browser", **self._as_device(name, signature)}
        return self._became(await self.rest("POST", "/auth/invites/redeem", body))

    async def attestation(self) -> Attestation:
        """A new passkey, not added yet."""
        made = await self.rest("POST", "/passkeys/challenge", {})
        options = made.body["options"]
        return self.authenticator.create(self.origin, raw(options["challenge"]), raw(options["user"]["id"]))

    async def add_passkey(self, step_up_id: str | None = None, name: str = "telephone") -> Answer:
        """Add a passkey."""
        body = self.passkey_body(await self.attestation(), name)
        return await self.rest("POST", "/passkeys", body if step_up_id is None else body | {"step_up_id": step_up_id})

    def passkey_body(self, made: Attestation, name: str = "telephone") -> dict[str, Any]:
        """What adds it."""
        challenge = raw(json.loads(made.client_data)["challenge"])
        hashed = hashlib.sha256(made.attestation_object).digest()
        signature = sign(self.signing_key, Purpose.PASSKEY_ADD, self.origin, challenge, hashed, name)
        return {"name": name, "credential": credential(made), "signature": b64(signature)}

    async def login_challenge(self) -> bytes:
        """What a passkey shall answer."""
        made = await self.rest("POST", "/auth/passkeys/challenge", {})
        return raw(made.body["options"]["challenge"])

    async def passkey_login(self, name: str = "browser", *, url: str | None = None) -> Answer:
        """Sign in with a passkey."""
        return await self.try_passkey_login(self.login_body(await self.login_challenge(), name), url=url)

    def login_body(self, challenge: bytes, name: str = "browser") -> dict[str, Any]:
        """What answers a challenge."""
        signature = sign(self.signing_key, Purpose.PASSKEY_LOGIN, self.origin, challenge, *self._keys, name)
        answered = self.authenticator.get(self.origin, challenge)
        return {"credential": credential(answered), "device": self._as_device(name, signature)}

    async def try_passkey_login(self, body: dict[str, Any], *, url: str | None = None) -> Answer:
        """Send an answer, which need not be right."""
        answer = self._became(await self.rest("POST", "/auth/passkeys/login", body, url=url))
        self.access_token = answer.body.get("access_token", self.access_token)
        return answer

    async def step_up(
        self,
        purpose: str,
        host_id: HostId | str = "",
        profile: str = "",
        session_user: str = "",
        *,
        url: str | None = None,
    ) -> str:
        """Confirm one act with a passkey; the id of the step-up."""
        named = {"host_id": str(host_id), "profile": profile, "session_user": session_user}
        act = {"purpose": purpose, **{name: value for name, value in named.items() if value}}
        made = await self.rest("POST", "/step-up/challenges", act, url=url)
        wanted = made.body["passkey"]
        allowed = [raw(each["id"]) for each in wanted["allowCredentials"]]
        answered = self.authenticator.get(self.origin, raw(wanted["challenge"]), allowed)
        proof = {"challenge": made.body["challenge"], "credential": credential(answered)}
        confirmed = await self.rest("POST", "/step-up", proof, url=url)
        return str(confirmed.body["step_up_id"])

    @property
    def _keys(self) -> tuple[bytes, bytes]:
        return self.signing_key.public_key().public_bytes_raw(), self.channel_key.public_key().public_bytes_raw()

    def _as_device(self, name: str, signature: bytes) -> dict[str, str]:
        signing_key, channel_key = map(b64, self._keys)
        return {"name": name, "signing_key": signing_key, "channel_key": channel_key, "signature": b64(signature)}

    def _became(self, answer: Answer) -> Answer:
        if answer.status == 201:
            self.device_id = DeviceId(parse_id(answer.body["device_id"]))
        return answer


def credential(given: Attestation | Assertion) -> dict[str, Any]:
    """As it stands in a body."""
    return {name: b64(value) for name, value in asdict(given).items() if value is not None}


def raw(text: str) -> bytes:
    """What base64url stands for."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
