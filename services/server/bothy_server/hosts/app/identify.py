"""Who is on a new control connection: the host's key, its state, its join counter, and the order of connections."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from bothy_server.hosts.app import join_values
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.domain.host import Host, HostState, close_code
from bothy_server.hosts.domain.join import Behind, judge
from bothy_server.identity.app.api import Tokens
from bothy_server.kernel.clock import Clock
from bothy_server.kernel.ids import new_id, time_of
from bothy_server.kernel.unit import UnitOfWork
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import HostIdentify
from bothy_wire.ids import ConnId, HostId
from bothy_wire.signing import Purpose, verify_any


@dataclass(frozen=True, slots=True)
class Admitted:
    """The connection counts; ``join_offered`` is what the host stores."""

    conn_id: ConnId
    pairing_seq: int
    join_offered: str


@dataclass(frozen=True, slots=True)
class Waits:
    """Paired, but no owner has confirmed the host yet."""

    pairing_seq: int


@dataclass(frozen=True, slots=True)
class Passed:
    """The host's key, with a join value that was passed already: not admitted; whoever answers on it is a copy (D5)."""

    pairing_seq: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Close with this code."""

    code: CloseCode


class Identify:
    """The identify unit, under the host's row lock."""

    def __init__(self, uow: UnitOfWork, tokens: Tokens, clock: Clock, origins: Collection[str]) -> None:
        """``origins``: audiences that a signature may name."""
        self._uow = uow
        self._tokens = tokens
        self._clock = clock
        self._origins = origins

    async def identify(self, challenge: bytes, frame: HostIdentify) -> Admitted | Waits | Passed | Refused:
        """Judge one identify. Raises ``StorageUnavailable`` when the row cannot be read."""
        host_id = HostId(frame.host_id)
        async with self._uow() as unit:
            host = await unit.of(HostStore).lock(host_id)
            if host is None or not self._signed(host, challenge, frame):
                return Refused(CloseCode.IDENTIFY_REFUSED)
            code = close_code(host, host.pairing_seq)
            if code is not None:
                return Refused(code)
            presented = join_values.read(self._tokens, host_id, host.pairing_seq, frame.join)
            if presented is None:
                return Refused(CloseCode.IDENTIFY_REFUSED)
            if host.state is HostState.PENDING:
                return Waits(host.pairing_seq)
            joined = judge(presented, host.join_confirmed, host.join_offered)
            if isinstance(joined, Behind):
                return Passed(host.pairing_seq)
            conn_id = self._conn_id(host)
            await unit.of(HostStore).record_identify(host_id, conn_id, frame.boot_id, joined.confirmed, joined.offered)
        return Admitted(
            conn_id, host.pairing_seq, join_values.offer(self._tokens, host_id, host.pairing_seq, joined.offered)
        )

    def _signed(self, host: Host, challenge: bytes, frame: HostIdentify) -> bool:
        fields = (challenge, str(frame.host_id), str(frame.boot_id), str(frame.version), frame.join)
        return host.signing_key is not None and verify_any(
            host.signing_key, frame.signature, Purpose.HOST_IDENTIFY, self._origins, *fields
        )

    def _conn_id(self, host: Host) -> ConnId:
        """Later than every earlier one of this host, whatever the node clocks say (``docs/spec/cluster.md``, D1)."""
        now = self._clock.now()
        if host.last_conn_id is not None:
            now = max(now, time_of(host.last_conn_id) + timedelta(milliseconds=1))
        return ConnId(new_id(now))
