"""What hosts need from outside, and what they tell upwards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from bothy_server.hosts.domain.host import Host, HostState
from bothy_server.kernel.unit import Signal, Unit
from bothy_wire.frames import CloseReason, EndReason, Frame, ReportedSession
from bothy_wire.ids import ConnId, HostId, SessionId


class HostStore(Protocol):
    """Rows of hosts and their pairing codes."""

    async def add(self, host_id: HostId, name: str) -> bool:
        """A new host in ``pending`` without keys; False when the name is taken."""

    async def get(self, host_id: HostId) -> Host | None:
        """One row."""

    async def lock(self, host_id: HostId) -> Host | None:
        """One row, held against other writers until the unit ends."""

    async def many(self, host_ids: Iterable[HostId]) -> list[Host]:
        """Rows by id."""

    async def all(self) -> list[Host]:
        """Every row, for operators."""

    async def find(self, name: str) -> Host | None:
        """The host of this name that is not retired."""

    async def rename(self, host_id: HostId, name: str) -> bool:
        """False when another host has the name: the unit is lost then, and must be refused."""

    async def add_code(self, code_id: UUID, host_id: HostId, code_hash: bytes, ttl_s: float) -> None:
        """Store a pairing code by hash. Earlier unused codes of the host are void."""

    async def use_code(self, code_hash: bytes) -> HostId | None:
        """Spend an unexpired code of a host in ``pending``, which is held until the unit ends. One caller wins."""

    async def prune_codes(self) -> int:
        """Forget expired codes; how many went."""

    async def clear_pairing(self, host_id: HostId) -> None:
        """Raise ``pairing_seq``, clear keys and counters, set ``pending``."""

    async def store_keys(
        self, host_id: HostId, signing_key: bytes, channel_key: bytes, state: HostState, join_offered: int
    ) -> bool:
        """The keys of a pairing. False when another host has one of them: the unit is lost then, and must be refused."""

    async def set_state(self, host_id: HostId, state: HostState, reason: str | None = None) -> None:
        """Write a transition."""

    async def disable(self, host_id: HostId, pairing_seq: int, reason: str) -> bool:
        """``active`` to ``disabled``, only while the pairing is this one; whether this call did it."""

    async def record_identify(
        self, host_id: HostId, conn_id: ConnId, boot_id: UUID, join_confirmed: int, join_offered: int
    ) -> None:
        """What an accepted identify changes."""

    async def record_report(
        self,
        host_id: HostId,
        conn_id: ConnId,
        profiles: Mapping[str, Sequence[str]],
        *,
        local_confirm: bool,
        os: str,
        arch: str,
    ) -> None:
        """What the host offers; it also confirms the join counter that ``conn_id`` was offered (D5).

        Nothing when a newer connection identified meanwhile.
        """

    async def touch(self, host_ids: Iterable[HostId]) -> None:
        """Write ``last_seen_at``."""


class ControlLink(Protocol):
    """One control connection on this node."""

    @property
    def host_id(self) -> HostId:
        """Whose."""

    @property
    def conn_id(self) -> ConnId:
        """Its identity; its time orders connections of one host."""

    @property
    def eligible(self) -> bool:
        """Active and reported: the host counts as connected."""

    @property
    def serving(self) -> bool:
        """Eligible, and no other connection speaks against it: may be told to open sessions."""

    def send(self, frame: Frame) -> None:
        """Queue one frame. A link whose queue is full is closed."""

    def defer(self, session_id: SessionId) -> None:
        """The host is to dial for this session; the link does not serve, so its row is read once it does."""

    def close(self, code: int, reason: str = "") -> None:
        """Write what is queued, then close."""

    def judge_again(self) -> None:
        """The host's row changed: read it and stay, proceed or go."""

    def announced(self, conn_id: ConnId) -> None:
        """Another connection of the host has reported, wherever it is."""

    def gone(self, conn_id: ConnId) -> None:
        """Another connection of the host went."""


class Signals(Protocol):
    """Signals outside any unit."""

    def send(self, signal: Signal) -> None:
        """Hand over for sending; never waits and never raises."""


class HostEvents(Protocol):
    """Upward news, bound to the terminal in the wiring."""

    async def unpaired(self, unit: Unit, host_id: HostId, reason: CloseReason) -> None:
        """The host leaves ``active``: end its sessions with this close_reason, in the same unit."""

    async def reported(self, link: ControlLink, boot_id: UUID, sessions: Sequence[ReportedSession]) -> None:
        """A link told what the host runs."""

    async def serve(
        self,
        link: ControlLink,
        boot_id: UUID,
        sessions: Sequence[ReportedSession],
        deferred: Collection[SessionId] = (),
    ) -> None:
        """From now on a link speaks for the host: what it did not name in its report is to be opened, or over.

        ``deferred``: for these it was to be asked to dial meanwhile.
        """

    async def started(self, link: ControlLink, session_id: SessionId) -> None:
        """The host says that a program runs; answer by ``host.session.recorded``."""

    async def ended(self, link: ControlLink, session_id: SessionId, reason: EndReason, exit_status: int | None) -> None:
        """The host says that a session is over; answer by ``host.session.recorded``."""
