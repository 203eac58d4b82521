"""``bothy login --approve`` and ``bothy devices approve``: a new device is let in by a person at another one.

The new device shows a short code. Its person types it where they are signed in, compares the fingerprint that both show,
and says yes there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from bothy_device.failure import Failure, Unreachable
from bothy_device.rest import Rest
from bothy_device.state import Login
from bothy_wire.printable import printable
from bothy_wire.signing import Purpose, fingerprint, sign


class _Begun(Struct, frozen=True):
    device_code: str
    user_code: str
    expires_in_s: float
    interval_s: float


class _State(Struct, frozen=True):
    state: Literal["waiting", "approved"]
    device_id: UUID | None = None
    person_name: str | None = None


class _Waiting(Struct, frozen=True):
    device_login_id: UUID
    name: str
    fingerprint: str


class _Approved(Struct, frozen=True):
    device_id: UUID


class _Denied(Struct, frozen=True):
    device_login_id: UUID


@dataclass(frozen=True, slots=True)
class NewDevice:
    """What a machine is before a relay knows it."""

    server: str
    name: str
    signer: Ed25519PrivateKey
    channel: X25519PrivateKey

    def login(self, device_id: UUID, person_name: str) -> Login:
        """What is kept once somebody let it in."""
        return Login(
            server=self.server,
            device_id=device_id,
            device_name=self.name,
            person_name=person_name,
            signing_key=self.signer.private_bytes_raw(),
            channel_key=self.channel.private_bytes_raw(),
        )


async def ask_in(rest: Rest, new: NewDevice, say: Callable[[str], None]) -> Login:
    """Ask, show the code by ``say``, and wait until somebody decided. A relay that is away meanwhile is asked again."""
    keys = new.signer.public_key().public_bytes_raw(), new.channel.public_key().public_bytes_raw()
    signature = sign(new.signer, Purpose.DEVICE_ASK, new.server, *keys, new.name)
    asking = {"name": new.name, "signing_key": keys[0], "channel_key": keys[1], "signature": signature}
    begun = await rest.send("POST", "/auth/device-logins", _Begun, asking)
    say(_words(begun, new.name, fingerprint(keys[1])))
    try:
        async with asyncio.timeout(begun.expires_in_s):
            return await _decided(rest, new, begun)
    except TimeoutError as error:
        raise Failure("nobody approved this device in time; begin again") from error


async def approve(rest: Rest, user_code: str, agreed: Callable[[str], bool]) -> str:
    """Let in the device that shows ``user_code``, if ``agreed`` with what asks; what became of it, as words."""
    waiting = await rest.call("POST", "/device-logins/find", _Waiting, {"user_code": user_code})
    name = printable(waiting.name)
    path = f"/device-logins/{waiting.device_login_id}"
    if not agreed(f"{name} asks to become a device of yours. It shows the fingerprint\n\n    {waiting.fingerprint}\n"):
        await rest.call("POST", f"{path}/deny", _Denied, {})
        return f"{name} was sent away"
    step_up_id = await rest.step_up("manage_account")
    made = await rest.make(f"{path}/approve", _Approved, {"step_up_id": step_up_id})
    return f"{name} is a device of yours now ({made.device_id})"


async def _decided(rest: Rest, new: NewDevice, begun: _Begun) -> Login:
    while True:
        wait_s = begun.interval_s
        try:
            told = await rest.send("POST", "/auth/device-logins/poll", _State, {"device_code": begun.device_code})
        except Unreachable:
            pass
        except Failure as failure:
            if failure.code not in {"slow_down", "rate_limited", "unavailable"}:
                raise
            wait_s += failure.retry_after
        else:
            if told.device_id is not None and told.person_name is not None:
                return new.login(told.device_id, told.person_name)
        await asyncio.sleep(wait_s)


def _words(begun: _Begun, name: str, shown: str) -> str:
    minutes = round(begun.expires_in_s / 60)
    return (
        f"On a machine where you are logged in at this relay:\n\n    bothy devices approve {begun.user_code}\n\n"
        f"It shows the name {name} and this fingerprint:\n\n    {shown}\n\n"
        f"Waiting for up to {minutes} minutes; Ctrl-C gives up."
    )


def ask(shown: str) -> bool:
    """The person's word."""
    click.echo(shown, err=True)
    try:
        return click.confirm("Is it the same there, and do you let it in?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise Failure("nobody could be asked, so it is not let in; run this in a terminal") from None
