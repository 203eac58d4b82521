"""``bothy login``, ``bothy logout``, ``bothy device show``: who this machine is at a server."""

from __future__ import annotations

import asyncio
import re
import socket

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_device.failure import Failure
from bothy_device.rest import Rest
from bothy_device.settings import load
from bothy_device.state import Login, Logins, home, origin_of
from bothy_wire.codes import normal_code
from bothy_wire.limits import NAME_BYTES
from bothy_wire.printable import printable
from bothy_wire.signing import fingerprint

_NO_WORD = re.compile(r"[\s=]+")
"""What would end the name in a line of ``authorized_devices``, or make an option of it."""


def log_in(url: str, code: str, name: str | None) -> None:
    """Spend an invite on fresh keys and keep them. Nothing is written unless the server took them."""
    origin = origin_of(url)
    logins = Logins(home())
    known = logins.find(origin)
    if known is not None:
        raise Failure(f"already logged in at {origin} as {printable(known.person_name)}; bothy logout comes first")
    code = normal_code(code)
    if not code:
        raise Failure("an invite code is needed; ask the operator for one")
    logins.check_writable()
    device_name = printable(name or socket.gethostname()) or "device"
    if len(device_name.encode()) > NAME_BYTES:
        raise Failure(f"the device's name is longer than {NAME_BYTES} bytes; give a shorter --name")
    signer, channel = Ed25519PrivateKey.generate(), X25519PrivateKey.generate()

    async def redeem() -> Login:
        async with Rest(origin, timeout=load(home() / "config.toml").device.request_timeout) as rest:
            redeemed = await rest.redeem(code, device_name, signer, channel.public_key().public_bytes_raw())
        return Login(
            server=origin,
            device_id=redeemed.device_id,
            device_name=device_name,
            person_name=redeemed.person_name,
            signing_key=signer.private_bytes_raw(),
            channel_key=channel.private_bytes_raw(),
        )

    login = asyncio.run(redeem())
    logins.store(login)
    click.echo(f"logged in at {origin} as {printable(login.person_name)}; this device is called {device_name}")


def log_out(server: str | None) -> None:
    """Forget the keys. The server keeps the device until it is revoked there."""
    logins = Logins(home())
    login = logins.load(server)
    logins.remove(login)
    click.echo(f"logged out at {login.server}; without its keys the device {login.device_name} is of no use to anybody")


def describe(login: Login) -> str:
    """Names and fingerprints of this device."""
    channel = fingerprint(login.channel.public_key().public_bytes_raw())
    return "\n".join(
        (
            f"relay        {login.server}",
            f"person       {printable(login.person_name)}",
            f"device       {login.device_name} ({login.device_id})",
            f"signing key  {fingerprint(login.signer.public_key().public_bytes_raw())}",
            f"channel key  {channel}",
            "",
            "Line for a host's authorized_devices:",
            f"{channel} {_NO_WORD.sub('-', login.device_name)}",
        )
    )
