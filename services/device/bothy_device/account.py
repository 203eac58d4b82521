"""``bothy login``, ``bothy logout``, ``bothy device show``: who this machine is at a server."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_device.device_login import NewDevice, ask_in
from bothy_device.devices import log_out as end_this_device
from bothy_device.failure import Failure
from bothy_device.rest import Rest
from bothy_device.settings import load
from bothy_device.state import Login, Logins, home, origin_of
from bothy_wire.codes import normal_code
from bothy_wire.limits import NAME_BYTES
from bothy_wire.printable import printable
from bothy_wire.signing import fingerprint

_KNOWN_NO_MORE = frozenset({"device_revoked", "login_refused", "person_disabled"})
_NO_WORD = re.compile(r"[\s=]+")
"""What would end the name in a line of ``authorized_devices``, or make an option of it."""


def log_in(url: str, code: str, name: str | None) -> None:
    """Spend an invite on fresh keys and keep them. Nothing is written unless the server took them."""
    code = normal_code(code)
    if not code:
        raise Failure("an invite code is needed; ask the operator for one, or use --approve")

    async def redeem(rest: Rest, new: NewDevice) -> Login:
        channel_key = new.channel.public_key().public_bytes_raw()
        redeemed = await rest.redeem(code, new.name, new.signer, channel_key)
        return new.login(redeemed.device_id, redeemed.person_name)

    _become_known(url, name, redeem)


def log_in_by_approval(url: str, name: str | None) -> None:
    """Wait until a person lets this machine in at another device of theirs."""

    async def ask(rest: Rest, new: NewDevice) -> Login:
        return await ask_in(rest, new, lambda words: click.echo(words, err=True))

    _become_known(url, name, ask)


def _become_known(url: str, name: str | None, way: Callable[[Rest, NewDevice], Awaitable[Login]]) -> None:
    origin = origin_of(url)
    logins = Logins(home())
    known = logins.find(origin)
    if known is not None:
        raise Failure(f"already logged in at {origin} as {printable(known.person_name)}; bothy logout comes first")
    logins.check_writable()
    device_name = printable(name or socket.gethostname()) or "device"
    if len(device_name.encode()) > NAME_BYTES:
        raise Failure(f"the device's name is longer than {NAME_BYTES} bytes; give a shorter --name")
    new = NewDevice(origin, device_name, Ed25519PrivateKey.generate(), X25519PrivateKey.generate())

    async def go() -> Login:
        async with Rest(origin, timeout=load(home() / "config.toml").device.request_timeout) as rest:
            return await way(rest, new)

    login = asyncio.run(go())
    logins.store(login)
    click.echo(f"logged in at {origin} as {printable(login.person_name)}; this device is called {device_name}")


def log_out(server: str | None) -> None:
    """Have the relay revoke this device, and forget the keys, whatever the relay says."""
    logins = Logins(home())
    login = logins.load(server)
    said = _told(login)
    logins.remove(login)
    click.echo(f"logged out at {login.server}; {said}")


def _told(login: Login) -> str:
    """What became of this device at the relay."""
    name = printable(login.device_name)

    async def tell() -> None:
        async with Rest(login.server, timeout=load(home() / "config.toml").device.request_timeout, login=login) as rest:
            await end_this_device(rest)

    try:
        asyncio.run(tell())
    except Failure as failure:
        if failure.code in _KNOWN_NO_MORE:
            return f"the device {name} was known there no more"
        click.echo(f"bothy: the relay was not told: {failure.message}", err=True)
        return (
            f"the device {name} is still known there, though without its keys it is of no use to anybody;"
            f" bothy devices revoke {name} ends it from another device of yours"
        )
    return f"the device {name} is revoked"


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
