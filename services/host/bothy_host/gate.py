"""Who may enter a session: every check on a device's first handshake message, in order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from bothy_host import authorized_devices
from bothy_host.authorized_devices import AuthorizedDevices, AuthorizedDevicesError
from bothy_host.host import Host
from bothy_host.tokens import Presented, TokenRefused
from bothy_wire.channel import Message1, RefusalCode
from bothy_wire.limits import SIZE_MAX, SIZE_MIN
from bothy_wire.signing import fingerprint


class HandshakeRefused(Exception):  # noqa: N818 - an answer to the device, not a fault of this program
    """The device may not enter. ``code`` is the answer, the message is for the log of the host.

    ``admitted`` is the file of admitted devices, when it was read and lacks the device.
    """

    def __init__(self, code: RefusalCode, reason: str, admitted: AuthorizedDevices | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.admitted = admitted


@dataclass(frozen=True, slots=True)
class Order:
    """A session as the server ordered it with ``host.session.open``."""

    session_id: UUID
    data_path: str
    profile: str
    session_user: str


async def admit(host: Host, order: Order, message1: Message1, device_key: bytes) -> AuthorizedDevices | None:
    """Let the device in or raise :class:`HandshakeRefused`; its token is spent in both cases.

    Returns the file of admitted devices as it was read now, when there is one.
    """
    presented = Presented(message1.token, order.session_id, device_key, host.clock.now())
    try:
        claims = await host.tokens.spend(presented)
    except TokenRefused as refused:
        raise HandshakeRefused(refused.code, f"session token: {refused}") from refused
    wanted = (order.profile, order.session_user)
    if (message1.profile, message1.session_user) != wanted or (claims.profile, claims.session_user) != wanted:
        raise HandshakeRefused("profile_mismatch", "order, token and device do not name the same profile and user")
    if not (size_allowed(message1.columns) and size_allowed(message1.rows)):
        raise HandshakeRefused("size_invalid", "the device's terminal has an impossible size")
    if host.authorized_devices is None:
        return None
    try:
        admitted = await asyncio.to_thread(authorized_devices.read, host.authorized_devices)
    except AuthorizedDevicesError as error:
        raise HandshakeRefused("device_not_authorized", str(error)) from error
    if not admitted.allows(fingerprint(device_key), *wanted):
        unlisted = f"authorized_devices has no line of {fingerprint(device_key)} for {' as '.join(wanted)}"
        raise HandshakeRefused("device_not_authorized", unlisted, admitted)
    return admitted


def size_allowed(cells: int) -> bool:
    """Whether a terminal may have so many columns or rows."""
    return SIZE_MIN <= cells <= SIZE_MAX
