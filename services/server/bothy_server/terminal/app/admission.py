"""The proof that a side gives before it is registered."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection

from bothy_server.hosts.app.api import find_host, refusal_of
from bothy_server.identity.app.api import StreamToken, TokenExpired, TokenInvalid, Tokens, find_device
from bothy_server.kernel.unit import StorageUnavailable, UnitOfWork
from bothy_server.terminal.domain.admission import DeviceIdentity, HostIdentity
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import DataIdentify, StreamIdentify
from bothy_wire.ids import HostId, SessionId
from bothy_wire.signing import Purpose, verify_any


class Admission:
    """Checks tokens and signatures. Every refusal is a close code; an unknown and a foreign session get the same one."""

    def __init__(
        self,
        uow: UnitOfWork,
        tokens: Tokens,
        origins: Collection[str],
        remembered: Callable[[SessionId], HostIdentity | None],
    ) -> None:
        """``origins``: audiences that a signature may name; ``remembered``: a session's host where N1a lets it in."""
        self._uow = uow
        self._tokens = tokens
        self._origins = origins
        self._remembered = remembered

    async def device(
        self, session_id: SessionId, challenge: bytes, frame: StreamIdentify
    ) -> DeviceIdentity | CloseCode:
        """Raises ``StorageUnavailable`` when the device's row cannot be read."""
        try:
            token = self._tokens.read(StreamToken, frame.stream_token)
        except TokenExpired:
            return CloseCode.TOKEN_EXPIRED
        except TokenInvalid:
            return CloseCode.IDENTIFY_REFUSED
        async with self._uow() as unit:
            device = await find_device(unit, token.device_id)
        hashed = hashlib.sha256(frame.stream_token.encode()).digest()
        fields = (challenge, str(session_id), hashed)
        if (
            token.session_id != session_id
            or device is None
            or not device.usable
            or not self._signed(device.signing_key, frame.signature, Purpose.STREAM_IDENTIFY, *fields)
        ):
            return CloseCode.IDENTIFY_REFUSED
        return DeviceIdentity(token.device_id, token.attach_seq, device.channel_key)

    async def host(self, session_id: SessionId, challenge: bytes, frame: DataIdentify) -> HostIdentity | CloseCode:
        """Raises ``StorageUnavailable`` when the host's row cannot be read and what this node remembers proves nothing."""
        host_id = HostId(frame.host_id)
        try:
            async with self._uow() as unit:
                host = await find_host(unit, host_id)
        except StorageUnavailable:
            known = self._remembered(session_id)
            if known is None or known.host_id != host_id or not self._proves(known, session_id, challenge, frame):
                raise
            return known
        if host is None or host.signing_key is None:
            return CloseCode.IDENTIFY_REFUSED
        identity = HostIdentity(host_id, host.signing_key, host.pairing_seq)
        if not self._proves(identity, session_id, challenge, frame):
            return CloseCode.IDENTIFY_REFUSED
        return refusal_of(host, host.pairing_seq) or identity

    def _proves(self, host: HostIdentity, session_id: SessionId, challenge: bytes, frame: DataIdentify) -> bool:
        fields = (challenge, str(host.host_id), str(session_id), str(host.pairing_seq))
        signed = self._signed(host.signing_key, frame.signature, Purpose.DATA_IDENTIFY, *fields)
        return frame.session_id == session_id and signed

    def _signed(self, key: bytes, signature: bytes, purpose: Purpose, *fields: bytes | str) -> bool:
        return verify_any(key, signature, purpose, self._origins, *fields)
